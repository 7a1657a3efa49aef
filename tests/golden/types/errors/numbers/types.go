// +groupName=errors.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BadSpec is wrong.
type BadSpec struct {
	// +kubebuilder:validation:Minimum=1
	A string `json:"a"`
	// +kubebuilder:validation:Maximum=1.5
	B int `json:"b"`
	// +kubebuilder:validation:MultipleOf=2
	C bool `json:"c"`
	// +kubebuilder:validation:ExclusiveMinimum=true
	D string `json:"d"`
	// +kubebuilder:validation:ExclusiveMaximum=true
	E string `json:"e"`
}

// Bad is wrong.
type Bad struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BadSpec `json:"spec"`
}
