// +groupName=kinds.example.com
// +versionName=hub
package internal

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Thing is in nobody's sight.
// +kubebuilder:skipversion
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}
