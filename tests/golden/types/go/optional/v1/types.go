// Package v1 has optional fields.
// +groupName=optional.example.com
// +kubebuilder:validation:Optional
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// LooseSpec requires little.
type LooseSpec struct {
	A string `json:"a"`
	// +kubebuilder:validation:Required
	B string `json:"b,omitempty"`
	// +required
	C string `json:"c"`
	// +optional
	D string `json:"d"`
}

// Loose is loose.
type Loose struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              LooseSpec `json:"spec"`
}
