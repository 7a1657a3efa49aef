// +groupName=errors.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BadSpec is wrong.
type BadSpec struct {
	// +kubebuilder:validation:MaxItems=1
	A string `json:"a"`
	// +kubebuilder:validation:MinItems=1
	B string `json:"b"`
	// +kubebuilder:validation:UniqueItems=true
	C string `json:"c"`
	// +kubebuilder:validation:MaxProperties=1
	D string `json:"d"`
	// +kubebuilder:validation:MinProperties=1
	E string `json:"e"`
}

// Bad is wrong.
type Bad struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BadSpec `json:"spec"`
}
