package v1

import (
	other "example.com/park/other/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Ride is a kind.
// +kubebuilder:object:root=true
type Ride struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   RideSpec   `json:"spec,omitempty"`
	Status RideStatus `json:"status,omitempty"`
}

// RideList is a list of rides.
// +kubebuilder:object:root=true
type RideList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Ride `json:"items"`
}

// RideSpec has a field of every form.
type RideSpec struct {
	Name, Title string
	Seats       *int32
	SeatsOf     **int32
	Owner       *string
	Bytes       []byte
	BytesOf     *[]byte
	Texts       []string
	TextsOf     []*string
	Lists       [][]string
	ListsOf     [][][]*int64
	Labels      map[string]string
	LabelsOf    *map[string]string
	Sets        map[string][]string
	Maps        map[string]map[string]*int32
	Pointers    map[string]*Gate
	Gates       map[string]Gate
	Deeps       map[string]GateSpec
	Keys        map[Key]Level
	Gate        Gate
	GateOf      *Gate
	GateSpec    GateSpec
	GateSpecOf  *GateSpec
	GateList    []Gate
	GateListOf  []*Gate
	SpecList    []GateSpec
	SpecListOf  []*GateSpec
	Level       Level
	LevelOf     *Level
	Levels      []Level
	NamedList   Names
	NamedListOf *Names
	NamedLists  []Names
	NamedMap    Sizes
	NamedMapOf  *Sizes
	NamedMaps   map[string]Sizes
	NamedOf     SeatOf
	Nameless    struct {
		Name string
	}
	NamelessDeep struct {
		Names []string
	} `json:"-"`
	Same     SameGate
	SameOf   *SameGate
	Texty    Text
	SameList SameNames
	SameMap  map[string]SameNames
	SameText []Text
	private  *string
}

// RideStatus has types of other packages.
type RideStatus struct {
	Port       other.Port
	PortOf     *other.Port
	Ports      other.Ports
	PortsOf    *other.Ports
	PortList   []other.Ports
	PortMap    map[other.Port]other.Ports
	Deep       other.Deep
	DeepOf     *other.Deep
	Flat       other.Flat
	FlatOf     *other.Flat
	FlatMap    map[string]other.Flat
	FlatList   []other.Flat
	Time       metav1.Time
	TimeOf     *metav1.Time
	Times      []metav1.Time
	TimesOf    []*metav1.Time
	TimeMap    map[string]metav1.Time
	TimeMapOf  map[string]*metav1.Time
	Duration   metav1.Duration
	DurationOf *metav1.Duration
	Quantity   metav1.Quantity
	QuantityOf *metav1.Quantity
	Quantities map[string]metav1.Quantity
	QuantityPs map[string]*metav1.Quantity
	QuantityL  []metav1.Quantity
	Selector   metav1.Selector
	SelectorOf *metav1.Selector
	Selectors  map[string]metav1.Selector
	SelectorPs map[string]*metav1.Selector
	Raw        runtime.RawExtension
	RawOf      *runtime.RawExtension
	Raws       []runtime.RawExtension
	*Embedded  `json:",inline"`
}
