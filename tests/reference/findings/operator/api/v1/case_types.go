// Package v1 has one kind. Which fault its controller shows with an object, the object says itself.
// +kubebuilder:object:generate=true
// +groupName=findings.example.com
package v1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

var (
	GroupVersion  = schema.GroupVersion{Group: "findings.example.com", Version: "v1"}
	SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}
	AddToScheme   = SchemeBuilder.AddToScheme
)

type CaseSpec struct {
	// Shows is the name of a case: a fault, or something healthy that looks like one.
	Shows string `json:"shows"`
	// Env is any input.
	Env map[string]string `json:"env,omitempty"`
	// Cpu is a number that has more than one spelling.
	Cpu *resource.Quantity `json:"cpu,omitempty"`
	// Child is the name of a child.
	Child string `json:"child,omitempty"`
}

type CaseStatus struct {
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	LastCheck          *metav1.MicroTime  `json:"lastCheck,omitempty"`
	Count              int64              `json:"count,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Case struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CaseSpec   `json:"spec"`
	Status            CaseStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true
type CaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Case `json:"items"`
}

func init() { SchemeBuilder.Register(&Case{}, &CaseList{}) }
