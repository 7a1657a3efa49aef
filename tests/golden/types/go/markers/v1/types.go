// Package v1 has every marker of fields, types and items.
// +kubebuilder:object:generate=true
// +groupName=markers.example.com
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Percent is a bounded number.
// +kubebuilder:validation:Minimum=0
// +kubebuilder:validation:Maximum=100
// +kubebuilder:validation:ExclusiveMaximum=true
// +kubebuilder:validation:MultipleOf=5
type Percent int

// Word is a bounded string.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
type Word string

// Words is a bounded list.
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=8
// +kubebuilder:validation:items:MaxLength=10
// +listType=set
type Words []string

// Limits is a bounded map.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=4
// +mapType=atomic
type Limits map[string]int64

// Phase is where it stands.
// +kubebuilder:validation:Enum=Pending;Running;"Not there";""
type Phase string

// Color is one of its constants.
// +k8s:enum
type Color string

const (
	Red    Color = "red"
	Blue   Color = "blue"
	Green  Color = "green"
	other        = "other"
	Number int   = 3
)

// Choice has at most one of its fields.
// +kubebuilder:validation:AtMostOneOf=a;b
// +kubebuilder:validation:ExactlyOneOf={c,d}
// +kubebuilder:validation:AtLeastOneOf=a;c
// +kubebuilder:validation:XValidation:rule="!has(self.a) || self.a != 'x'",message="no x"
type Choice struct {
	// +optional
	A string `json:"a,omitempty"`
	B string `json:"b,omitempty"`
	C *int32 `json:"c,omitempty"`
	D *bool  `json:"d,omitempty"`
}

// Item is an entry of a list.
type Item struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Value    string `json:"value,omitempty"`
}

// Titled has a title of its own.
// +kubebuilder:title="The titled type"
// +kubebuilder:externalDocs:url="https://example.com/titled",description="all of it"
type Titled struct {
	// +kubebuilder:title=A field
	Field string `json:"field,omitempty"`
}

// MarkedSpec is what the markers stand on.
// +kubebuilder:validation:XValidation:rule="self.replicas <= self.most",message="too many"
// +kubebuilder:validation:XValidation:rule="self.word != 'a,b;c'"
type MarkedSpec struct {
	// Replicas is a number.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum:=10
	// +kubebuilder:validation:ExclusiveMinimum=false
	// +kubebuilder:default=1
	Replicas int32 `json:"replicas"`
	Most     int64 `json:"most"`
	// +kubebuilder:validation:MultipleOf=2
	Percent Percent `json:"percent,omitempty"`
	// +kubebuilder:validation:MinLength=2
	Word Word `json:"word,omitempty"`
	// +kubebuilder:validation:Format=uuid
	UUID string `json:"uuid,omitempty"`
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	When metav1.Time `json:"when,omitempty"`

	Words Words `json:"words,omitempty"`
	// +kubebuilder:validation:UniqueItems=false
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Enum=1;2;3
	Numbers []int32 `json:"numbers,omitempty"`
	// +kubebuilder:validation:items:XValidation:rule="self.size() > 0",message="empty"
	// +kubebuilder:validation:items:Pattern="^[a-z\"]+$"
	// +kubebuilder:validation:items:Format=hostname
	// +listType=atomic
	Names  []string `json:"names,omitempty"`
	Limits Limits   `json:"limits,omitempty"`

	// +listType=map
	// +listMapKey=name
	// +listMapKey=protocol
	// +patchStrategy=merge
	Items []Item `json:"items,omitempty"`
	// +structType=atomic
	Item Item `json:"item,omitempty"`
	// +mapType=granular
	Labels map[string]string `json:"labels,omitempty"`

	// +kubebuilder:validation:Enum=1;2;true;text
	Mixed  string   `json:"mixed,omitempty"`
	Phase  Phase    `json:"phase,omitempty"`
	Phases []Phase  `json:"phases,omitempty"`
	Color  Color    `json:"color,omitempty"`
	Choice Choice   `json:"choice,omitempty"`
	Titled Titled   `json:"titled,omitempty"`
	Other  []Choice `json:"other,omitempty"`

	// +nullable
	Maybe *string `json:"maybe,omitempty"`
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Free func() `json:"free,omitempty"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:EmbeddedResource
	Template runtime.RawExtension `json:"template,omitempty"`
	// +kubebuilder:validation:XEmbeddedResource
	// +kubebuilder:validation:XPreserveUnknownFields
	Embedded Item `json:"embedded,omitempty"`
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern="^[0-9]+%?$"
	Share string `json:"share,omitempty"`

	// +kubebuilder:default={a,b}
	DefaultList []string `json:"defaultList,omitempty"`
	// +kubebuilder:default={}
	DefaultEmptyList []string `json:"defaultEmptyList,omitempty"`
	// +kubebuilder:default={}
	DefaultEmptyMap map[string]string `json:"defaultEmptyMap,omitempty"`
	// +kubebuilder:default={name: x, protocol: "TCP", deep: {1,2}}
	DefaultObject Item `json:"defaultObject,omitempty"`
	// +kubebuilder:default={{name: x},{name: y}}
	DefaultObjects []Item `json:"defaultObjects,omitempty"`
	// +kubebuilder:default=true
	DefaultBool bool `json:"defaultBool,omitempty"`
	// +kubebuilder:default=some words
	DefaultWords string `json:"defaultWords,omitempty"`
	// +kubebuilder:default=""
	DefaultEmpty string `json:"defaultEmpty,omitempty"`
	// +default={"a": [1, 2.0, null]}
	DefaultJSON map[string]string `json:"defaultJSON,omitempty"`
	// +default="loses"
	// +kubebuilder:default="wins"
	DefaultBoth string `json:"defaultBoth,omitempty"`
	// +default=ref(Something)
	DefaultRef string `json:"defaultRef,omitempty"`
	// +kubebuilder:example={a: 1, b: two}
	Example map[string]string `json:"example,omitempty"`
	// +kubebuilder:title="Titled field"
	// +kubebuilder:example=-3
	// +kubebuilder:externalDocs:url="https://example.com/docs"
	Documented int `json:"documented,omitempty"`

	// +k8s:immutable
	// +required
	Fixed string `json:"fixed"`
	// +k8s:immutable
	// +optional
	FixedOnce string `json:"fixedOnce,omitempty"`

	// +kubebuilder:validation:Optional
	OptionalA string `json:"optionalA"`
	// +optional
	OptionalB string `json:"optionalB"`
	// +k8s:optional
	OptionalC string `json:"optionalC"`
	// +kubebuilder:validation:Required
	RequiredA string `json:"requiredA,omitempty"`
	// +required
	RequiredB string `json:"requiredB,omitempty"`
	// +k8s:required
	RequiredC string `json:"requiredC,omitempty"`
	// +optional
	// +kubebuilder:validation:Required
	Both string `json:"both,omitempty"`
	// +k8s:listType=set
	// +k8s:maxItems=3
	Declarative []string `json:"declarative,omitempty"`
}

// Marked carries markers.
// +kubebuilder:object:root=true
type Marked struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MarkedSpec `json:"spec,omitempty"`
}
