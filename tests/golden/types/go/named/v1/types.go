// Package v1 has topology markers on fields of named lists and maps.
// +groupName=named.example.com
package v1

import (
	other "example.com/golden/named/other"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Names []string
type Labels map[string]string
type Inner struct {
	A string `json:"a,omitempty"`
}
type Inners []Inner
type Num int32
type Word string
type AliasNames = []string
type AliasOfNames = Names
type AliasLabels = map[string]string
type AliasWord = Word
type AliasInner = Inner
type Deep Names

// +listType=set
type SetNames []string

// +kubebuilder:object:root=true
// Named has them.
type Named struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NamedSpec `json:"spec"`
}
type NamedSpec struct {
	// +listType=set
	Names Names `json:"names,omitempty"`
	// +listType=atomic
	PNames *Names `json:"pnames,omitempty"`
	// +mapType=atomic
	Labels Labels `json:"labels,omitempty"`
	// +listType=map
	// +listMapKey=a
	Inners Inners `json:"inners,omitempty"`
	// +listType=set
	ON other.Names `json:"on,omitempty"`
	// +mapType=atomic
	OL other.Labels `json:"ol,omitempty"`
	// +listType=atomic
	SetNames SetNames `json:"setNames,omitempty"`
	// +listType=set
	SetNames2 SetNames `json:"setNames2,omitempty"`
	// +listType=set
	Deep Deep `json:"deep,omitempty"`
	// +kubebuilder:validation:MaxItems=3
	Max Names `json:"max,omitempty"`
	// +listType=set
	M2 []Names `json:"m2,omitempty"`
	// +structType=atomic
	St Inner `json:"st,omitempty"`
	// +listType=set
	AON AliasOfNames `json:"aon,omitempty"`
	AW  AliasWord    `json:"aw,omitempty"`
	AI  AliasInner   `json:"ai,omitempty"`
}
