// +groupName=errors.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BadSpec is wrong.
type BadSpec struct {
	// +mapType=odd
	A map[string]string `json:"a"`
	// +mapType=atomic
	B string `json:"b"`
	// +structType=atomic
	C string `json:"c"`
	// +structType=odd
	D map[string]string `json:"d"`
}

// Bad is wrong.
type Bad struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BadSpec `json:"spec"`
}
