// +groupName=errors.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// List is a list.
type List = []string

// BadSpec is wrong.
type BadSpec struct {
	A List `json:"a"`
}

// Bad is wrong.
type Bad struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BadSpec `json:"spec"`
}
