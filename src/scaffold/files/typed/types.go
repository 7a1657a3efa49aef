package @VERSION@

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"@IMPORT@
)

// @KIND@Spec is what the user wants of a @KIND@.
type @KIND@Spec struct {
	// message is written into the ConfigMap of this @KIND@.
	// Replace it with your own fields; opdev turns them into the CRD when you save.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:default="hello"
	// +optional
	Message string `json:"message,omitempty"`
}

// @KIND@Status is what is known of a @KIND@.
type @KIND@Status struct {
	// observedGeneration is the generation of the spec that the rest of the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions say how far the work is. Ready is True when all that was asked for is there.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=@PLURAL@@SCOPE@
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// @KIND@ is the schema of the @PLURAL@ API.
type @KIND@ struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +optional
	Spec @KIND@Spec `json:"spec,omitempty"`

	// status is what is known.
	// +optional
	Status @KIND@Status `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// @KIND@List is a list of @KIND@.
type @KIND@List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []@KIND@ `json:"items"`
}
