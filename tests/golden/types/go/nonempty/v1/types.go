// Package v1 has the limits of declarative validation.
// +groupName=nonempty.example.com
package v1

import (
	other "example.com/golden/named/other"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Names []string

// +kubebuilder:validation:MinItems=2
type Two []string
type Labels map[string]string
type Inner struct {
	A string `json:"a,omitempty"`
}

// +kubebuilder:validation:MinProperties=1
type One struct {
	A string `json:"a,omitempty"`
}
type Num int32
type Word string

// +kubebuilder:validation:MinLength=3
type Long string

// +kubebuilder:object:root=true
// Nonempty has them.
type Nonempty struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              NonemptySpec `json:"spec"`
}
type NonemptySpec struct {
	// +k8s:required
	S string `json:"s"`
	// +k8s:required
	PS *string `json:"ps"`
	// +k8s:required
	// +kubebuilder:validation:MinLength=0
	S0 string `json:"s0"`
	// +k8s:required
	L []string `json:"l"`
	// +k8s:required
	M map[string]string `json:"m"`
	// +k8s:required
	I int32 `json:"i"`
	// +k8s:required
	B bool `json:"b"`
	// +k8s:required
	N Names `json:"n"`
	// +k8s:required
	Two Two `json:"two"`
	// +k8s:required
	La Labels `json:"la"`
	// +k8s:required
	In Inner `json:"in"`
	// +k8s:required
	One One `json:"one"`
	// +k8s:required
	Num Num `json:"num"`
	// +k8s:required
	Word Word `json:"word"`
	// +k8s:required
	Long Long `json:"long"`
	// +k8s:required
	ON other.Names `json:"on"`
	// +k8s:required
	OL other.Labels `json:"ol"`
	// +k8s:required
	OW other.Word `json:"ow"`
	// +k8s:required
	ONum other.Num `json:"onum"`
	// +k8s:required
	OS other.S `json:"os"`
	// +k8s:required
	By []byte `json:"by"`
	// +k8s:required
	T metav1.Time `json:"t"`
	// +k8s:required
	// +kubebuilder:validation:Schemaless
	Sl string `json:"sl"`
	// +k8s:maxItems=10 # ten
	// +k8s:required
	X []string `json:"x"`
	// +k8s:minimum=1#one
	// +k8s:maximum=2.50e3
	Y int32 `json:"y"`
	// +kubebuilder:validation:MaxItems= 7
	// +kubebuilder:validation:items:Maximum=12
	W []int32 `json:"w"`
	// +k8s:maxItems=10
	// +kubebuilder:validation:MaxItems=10
	V []string `json:"v"`
	// +k8s:required
	// +optional
	U string `json:"u,omitempty"`
}
