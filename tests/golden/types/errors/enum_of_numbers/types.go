// +groupName=errors.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Number is one.
// +k8s:enum
type Number int

// BadSpec is wrong.
type BadSpec struct {
	A Number `json:"a"`
}

// Bad is wrong.
type Bad struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BadSpec `json:"spec"`
}
