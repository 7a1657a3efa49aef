// Package v1 says things twice: once for controller-gen, once for declarative validation.
// +groupName=doubled.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Doubled has one field for each marker that may stand there twice.
// +kubebuilder:object:root=true
type Doubled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DoubledSpec `json:"spec"`
}

// Item is one of a list.
type Item struct {
	Name string `json:"name"`
	Zone string `json:"zone"`
}

// Letter is one of some.
// +kubebuilder:validation:Enum=a;b
// +k8s:enum
// +enum
type Letter string

const (
	LetterA Letter = "a"
	LetterB Letter = "b"
)

// DoubledSpec carries the markers of Kubernetes 0.37, where a field has both.
type DoubledSpec struct {
	// +optional
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	// +k8s:optional
	// +k8s:listType=map
	// +k8s:listMapKey=name
	OneKey []Item `json:"oneKey,omitempty"`
	// +listType=map
	// +listMapKey=name
	// +listMapKey=zone
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +k8s:listMapKey=zone
	TwoKeys []Item `json:"twoKeys,omitempty"`
	// +k8s:listType=map
	// +k8s:listMapKey=name
	OnlyDeclarative []Item `json:"onlyDeclarative,omitempty"`
	// +listType=map
	// +listMapKey=zone
	// +listMapKey=name
	// +listMapKey=zone
	OneMarkerTwice []Item `json:"oneMarkerTwice,omitempty"`
	// +listType=set
	// +k8s:listType=set
	Set []string `json:"set,omitempty"`
	// +required
	// +k8s:required
	// +kubebuilder:validation:Required
	Required int32 `json:"required"`
	// +required
	// +k8s:optional
	Either int32 `json:"either,omitempty"`
	// +default="a"
	// +kubebuilder:default=a
	Default string `json:"default,omitempty"`
	// +kubebuilder:validation:Enum=a;b
	// +kubebuilder:validation:Enum=a;b
	Enum string `json:"enum,omitempty"`
	// +k8s:immutable
	// +k8s:immutable
	Immutable string `json:"immutable,omitempty"`
	// +kubebuilder:validation:XValidation:rule="self != ''"
	// +kubebuilder:validation:XValidation:rule="self != ''"
	Ruled string `json:"ruled,omitempty"`
	// +nullable
	// +nullable
	Null *string `json:"null,omitempty"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MinLength=1
	Long   string `json:"long,omitempty"`
	Letter Letter `json:"letter,omitempty"`
}
