package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type (
	// Names is a list.
	Names []string

	// Sizes is a map.
	Sizes map[string]Gate

	// Gates is a list of structs.
	Gates []GateSpec

	// SeatOf is a pointer.
	SeatOf *int32

	// GateOf is a pointer to a struct.
	GateOf *GateSpec

	// Key is a text.
	Key string

	// Level is a number.
	Level int8
)

// Gate is shallow.
type Gate struct {
	Name  string
	Level Level
}

// GateSpec is deep.
type GateSpec struct {
	Names Names
	Next  *GateSpec
}

// Embedded is embedded.
type Embedded struct {
	Gate
	*GateSpec
	Names
	metav1.Duration
}

// Copied has a method of its own.
type Copied struct {
	parts []string
}

// DeepCopy copies.
func (in *Copied) DeepCopy() *Copied {
	return in
}

// CopiedInto has the other method.
type CopiedInto struct {
	parts []string
}

// DeepCopyInto copies.
func (in *CopiedInto) DeepCopyInto(out *CopiedInto) {
	*out = *in
}

// CopiedList has a method of its own.
type CopiedList []string

// DeepCopy copies.
func (in CopiedList) DeepCopy() CopiedList {
	return in
}

// CopiedText is a text with a method.
type CopiedText string

// DeepCopy copies.
func (in CopiedText) DeepCopy() CopiedText {
	return in
}

// Odd has a method of another form.
type Odd struct {
	Names []string
}

// DeepCopyObjectInto is not one of them.
func (in *Odd) DeepCopyObjectInto() {}

// UsesCopied has fields of them.
type UsesCopied struct {
	Copied     Copied
	CopiedOf   *Copied
	Copies     []Copied
	CopiesOf   []*Copied
	CopyMap    map[string]Copied
	CopyMapOf  map[string]*Copied
	Into       CopiedInto
	IntoOf     *CopiedInto
	IntoList   []CopiedInto
	IntoListOf []*CopiedInto
	IntoMap    map[string]CopiedInto
	IntoMapOf  map[string]*CopiedInto
	List       CopiedList
	ListOf     *CopiedList
	Lists      []CopiedList
	ListMap    map[string]CopiedList
	ListMapOf  map[string]*CopiedList
	Text       CopiedText
	TextOf     *CopiedText
	TextMap    map[string]CopiedText
}

// SameGate is another name.
type SameGate = GateSpec

// SameNames is another name.
type SameNames = []string

// Text is another name.
type Text = string

// HasSame is deep, for another name is.
type HasSame struct {
	Text Text
}

// UsesSame has one.
type UsesSame struct {
	Has  HasSame
	HasM map[string]HasSame
	HasP *HasSame
}

// Off is left out.
// +kubebuilder:object:generate=false
type Off struct {
	Names []string
}

// Derived is declared by another struct.
type Derived GateSpec

// Iface is an interface.
// +kubebuilder:object:generate=false
type Iface interface {
	Do()
}

type private struct {
	names []string
}
