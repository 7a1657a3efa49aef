// +groupName=errors.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Missing is embedded.
type Missing struct{}

// BadSpec is wrong.
type BadSpec struct {
	F string
	G string `yaml:"g"`
	Missing
}

// Bad is wrong.
type Bad struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BadSpec `json:"spec"`
}
