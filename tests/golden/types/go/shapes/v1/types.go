// +groupName=shapes.example.com
// +versionName=v1

// Package v1 has the forms of Go types.
package v1

import (
	. "example.com/golden/shared"
	other "example.com/golden/shared"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Text is a string with documentation.
type Text string

// Alias is another name for a builtin.
// +kubebuilder:validation:MaxLength=5
type Alias = string

// Same is another name for a type of this package.
type Same = Text

// Key is a kind of string.
type Key Text

// Tree contains itself.
type Tree struct {
	Name     string          `json:"name"`
	Children []Tree          `json:"children,omitempty"`
	ByName   map[string]Tree `json:"byName,omitempty"`
	Parent   *Tree           `json:"parent,omitempty"`
}

// Odd writes its own JSON, and says what it is.
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:Format=odd
type Odd struct {
	hidden int
}

// MarshalJSON writes it.
func (o Odd) MarshalJSON() ([]byte, error) { return nil, nil }

// Plain writes its own JSON, and does not say what it is.
type Plain struct {
	Seen string `json:"seen"`
}

// MarshalJSON writes it.
func (p *Plain) MarshalJSON() ([]byte, error) { return nil, nil }

// Lines writes text.
// +kubebuilder:validation:MaxLength=80
type Lines struct {
	parts []string
}

// MarshalText writes it.
func (l Lines) MarshalText() ([]byte, error) { return nil, nil }

// Inherits has the text of what it embeds.
type Inherits struct {
	Lines
}

// Wrong takes an argument, and so is no marshaller.
type Wrong struct {
	Field string `json:"field,omitempty"`
}

// MarshalText is something else.
func (w Wrong) MarshalText(indent int) ([]byte, error) { return nil, nil }

// Base is inlined.
type Base struct {
	// FromBase comes from below.
	FromBase string `json:"fromBase"`
	// Hidden by the outer one.
	Shared string `json:"shared,omitempty"`
}

// Deep is inlined twice.
type Deep struct {
	Base `json:",inline"`
	// Own is its own.
	Own int `json:"own"`
}

// Pointed is inlined through a pointer.
type Pointed struct {
	Through string `json:"through,omitempty"`
}

// ShapeSpec has one field of each form.
type ShapeSpec struct {
	Deep     `json:",inline"`
	*Pointed `json:",inline"`
	Named    Base `json:"named,inline"`
	// Shared is said twice.
	Shared string `json:"shared,omitempty"`

	Bool    bool    `json:"bool"`
	String  string  `json:"string"`
	Int     int     `json:"int"`
	Int8    int8    `json:"int8"`
	Int16   int16   `json:"int16"`
	Int32   int32   `json:"int32"`
	Int64   int64   `json:"int64"`
	Uint    uint    `json:"uint"`
	Uint8   uint8   `json:"uint8"`
	Uint16  uint16  `json:"uint16"`
	Uint32  uint32  `json:"uint32"`
	Uint64  uint64  `json:"uint64"`
	Rune    rune    `json:"rune"`
	Byte    byte    `json:"byte"`
	Pointer *string `json:"pointer"`
	Double  **int32 `json:"double"`

	Bytes    []byte                       `json:"bytes"`
	Uint8s   []uint8                      `json:"uint8s"`
	Fixed    [4]byte                      `json:"fixed"`
	Strings  []string                     `json:"strings"`
	Nested   [][]int32                    `json:"nested"`
	Array    [3]Text                      `json:"array"`
	Map      map[string]string            `json:"map"`
	Keyed    map[Key]Base                 `json:"keyed"`
	Maps     map[string]map[Text][]*int64 `json:"maps"`
	Datas    map[string][]byte            `json:"datas"`
	Pointers []*Base                      `json:"pointers"`

	Text  Text  `json:"text"`
	Key   Key   `json:"key"`
	Alias Alias `json:"alias"`
	// Said here.
	Same    Same    `json:"same"`
	Aliases []Alias `json:"aliases"`
	Tree    Tree    `json:"tree"`

	Odd      Odd      `json:"odd"`
	Plain    *Plain   `json:"plain"`
	Lines    Lines    `json:"lines"`
	Inherits Inherits `json:"inherits"`
	Wrong    Wrong    `json:"wrong"`
	Odds     []Odd    `json:"odds"`

	Dotted   other.Mode            `json:"dotted"`
	Endpoint Endpoint              `json:"endpoint"`
	Port     other.Port            `json:"port"`
	Level    other.Level           `json:"level"`
	Name     other.Name            `json:"name"`
	Where    other.Where           `json:"where"`
	Ports    []other.Port          `json:"ports"`
	Modes    map[string]other.Mode `json:"modes"`

	Time         metav1.Time                  `json:"time"`
	Micro        *metav1.MicroTime            `json:"micro"`
	Duration     metav1.Duration              `json:"duration"`
	Fields       metav1.Fields                `json:"fields"`
	Meta         metav1.ObjectMeta            `json:"meta"`
	ListMeta     metav1.ListMeta              `json:"listMeta"`
	Selector     *metav1.Selector             `json:"selector"`
	Quantity     resource.Quantity            `json:"quantity"`
	Quantities   map[string]resource.Quantity `json:"quantities"`
	IntOrString  *intstr.IntOrString          `json:"intOrString"`
	Raw          runtime.RawExtension         `json:"raw"`
	JSON         extensions.JSON              `json:"json"`
	JSONs        map[string]extensions.JSON   `json:"jsons"`
	Unstructured unstructured.Unstructured    `json:"unstructured"`

	A, B    string   `json:"ab"`
	Skipped string   `json:"-"`
	Dash    string   `json:"-,"`
	Omitted string   `json:"omitted,omitempty"`
	Zero    string   `json:"zero,omitzero"`
	Quoted  string   `protobuf:"x" json:"quoted,omitempty" yaml:"y"`
	Spaced  int      `json:"spaced,string"`
	Chan    chan int `json:"-"`
}

// Shape has every form.
type Shape struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ShapeSpec `json:"spec"`
}

// ShapeList is no kind.
type ShapeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shape `json:"items"`
}
