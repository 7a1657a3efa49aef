// Package v1 joins what types say with what fields say, where no bound depends on the kind of a named type.
// +groupName=joined.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind is one of some.
// +kubebuilder:validation:Enum=a;b
type Kind string

// Part has a rule.
// +kubebuilder:validation:XValidation:rule="self.kind == 'type'"
// +kubebuilder:validation:XValidation:rule="self.kind != 'second'"
type Part struct {
	// Kind of the part.
	Kind Kind `json:"kind"`
	// Map of it.
	// +kubebuilder:validation:MinProperties=1
	Map map[string]string `json:"map,omitempty"`
	// +listType=set
	List []string `json:"list,omitempty"`
	// +kubebuilder:validation:Enum=x;y
	Word string `json:"word,omitempty"`
}

// Again says some of it again.
type Again struct {
	Part `json:",inline"`
	// Map of the other.
	// +kubebuilder:validation:MinProperties=1
	Map map[string]string `json:"map,omitempty"`
	// +listType=atomic
	List []string `json:"list,omitempty"`
	// +kubebuilder:validation:Enum=y;z
	Word string `json:"word,omitempty"`
	// +nullable
	Kind Kind `json:"kind,omitempty"`
}

// JoinedSpec is joined.
type JoinedSpec struct {
	// +kubebuilder:validation:XValidation:rule="self.kind == 'field'"
	// +kubebuilder:validation:Enum=c;a
	Part Part `json:"part"`
	// +kubebuilder:validation:Enum=c;a
	Kind  Kind   `json:"kind,omitempty"`
	Again Again  `json:"again"`
	Parts []Part `json:"parts,omitempty"`
}

// Joined is joined.
type Joined struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              JoinedSpec `json:"spec"`
}
