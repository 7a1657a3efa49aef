// +groupName=flatten.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Short is a short string.
// +kubebuilder:validation:MaxLength=10
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:Pattern=`^a`
// +kubebuilder:validation:XValidation:rule="self != 'type'"
type Short string

// Small is a small number.
// +kubebuilder:validation:Maximum=10
// +kubebuilder:validation:Format=int16
type Small int32

// List is a list.
// +kubebuilder:validation:MaxItems=5
// +listType=atomic
type List []Short

// Counts is a map.
// +kubebuilder:validation:MaxProperties=3
// +kubebuilder:validation:MinProperties=1
type Counts map[string]Small

// Choice is one of some.
// +kubebuilder:validation:Enum=a;b
type Choice string

// Outer says so.
// +kubebuilder:validation:XValidation:rule="self.inner == 'type'"
// +structType=granular
type Outer struct {
	// Inner of the type.
	Inner string `json:"inner"`
	Other string `json:"other,omitempty"`
}

// Left has a name.
// +structType=atomic
type Left struct {
	// Name of the left one.
	// +kubebuilder:validation:MaxLength=3
	Name string `json:"name"`
	// +kubebuilder:default=1
	Count int    `json:"count,omitempty"`
	Only  string `json:"only,omitempty"`
	// +kubebuilder:validation:MaxProperties=3
	// +kubebuilder:validation:MinProperties=1
	Map map[string]string `json:"map,omitempty"`
}

// Right has a name too.
type Right struct {
	// +kubebuilder:validation:MaxProperties=3
	// +kubebuilder:validation:MinProperties=2
	Map map[string]string `json:"map,omitempty"`
	// Name of the right one.
	// +kubebuilder:validation:MaxLength=4
	Name string `json:"name"`
	// +kubebuilder:default=2
	Count int `json:"count,omitempty"`
}

// Both inlines both.
type Both struct {
	Left  `json:",inline"`
	Right `json:",inline"`
	// Name of the outer one.
	// +kubebuilder:validation:MaxLength=5
	Name string `json:"name"`
}

// Recursive goes on.
type Recursive struct {
	Next *Recursive  `json:"next,omitempty"`
	More []Recursive `json:"more,omitempty"`
}

// FlatSpec has fields that say more than their types.
type FlatSpec struct {
	// Described here.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^a`
	// +kubebuilder:validation:XValidation:rule="self != 'field'",message="no"
	// +kubebuilder:title=here
	Short Short `json:"short"`
	// +kubebuilder:validation:Pattern=`^b`
	Pattern Short `json:"pattern"`
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:validation:Minimum=1
	Small Small `json:"small"`
	// +kubebuilder:validation:Format=int64
	Format Small  `json:"format"`
	Plain  Short  `json:"plain"`
	Counts Counts `json:"counts"`
	// +kubebuilder:validation:Enum=b;c
	Choice Choice `json:"choice"`
	// +kubebuilder:validation:XValidation:rule="self.inner == 'field'"
	// +kubebuilder:default={inner: x}
	// +nullable
	// +structType=atomic
	Outer Outer `json:"outer"`
	List  List  `json:"list"`
	// Both of them.
	Both      Both      `json:"both"`
	Left      Left      `json:"left"`
	Recursive Recursive `json:"recursive"`
	// +kubebuilder:pruning:PreserveUnknownFields
	Open Outer `json:"open"`
	// +kubebuilder:example=x
	Example Short `json:"example"`
}

// Flat is flat.
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'x'"
type Flat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Both              `json:",inline"`

	// Spec of the flat one.
	Spec FlatSpec `json:"spec"`
}
