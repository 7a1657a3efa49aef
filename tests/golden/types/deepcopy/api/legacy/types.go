// +k8s:deepcopy-gen=package,register

// Package legacy has the older markers.
package legacy

import (
	v1 "example.com/park/other/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Old is a kind.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Old struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Ports   *v1.Ports
	Seconds *metav1.Duration
}

// OldMap is a kind that is a map.
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type OldMap map[string]string

// Out is left out.
// +k8s:deepcopy-gen=false
type Out struct {
	Names []string
}
