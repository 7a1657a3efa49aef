// Package v1 has one kind.
// +kubebuilder:object:generate=true
// +groupName=torture.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	GroupVersion  = schema.GroupVersion{Group: "torture.example.com", Version: "v1"}
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}
	AddToScheme   = SchemeBuilder.AddToScheme
)

// Backup says when copies are made.
type Backup struct {
	Schedule string `json:"schedule"`
}

type StoreSpec struct {
	// Size is the number of members.
	// +kubebuilder:validation:Minimum=0
	Size int `json:"size"`
	// Backup is nothing where no copies are made.
	// +optional
	Backup *Backup `json:"backup,omitempty"`
}

type StoreStatus struct {
	Size int `json:"size,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              StoreSpec   `json:"spec"`
	Status            StoreStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true
type StoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Store `json:"items"`
}

func init() { SchemeBuilder.Register(&Store{}, &StoreList{}) }
