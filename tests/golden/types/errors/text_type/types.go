// +groupName=errors.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Text writes text.
// +kubebuilder:validation:Type=integer
type Text struct{ n int }

// MarshalText writes it.
func (t Text) MarshalText() ([]byte, error) { return nil, nil }

// BadSpec is wrong.
type BadSpec struct {
	A Text `json:"a"`
}

// Bad is wrong.
type Bad struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              BadSpec `json:"spec"`
}
