// Package v1 has types that are reached twice.
// +groupName=twice.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Twice has a field that it also inlines.
// +kubebuilder:object:root=true
type Twice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TwiceSpec `json:"spec"`
}

// TwiceSpec has it directly and by an inlined struct.
type TwiceSpec struct {
	// Authorization of its own.
	Authorization *Authorization `json:"authorization,omitempty"`
	// Own is declared twice.
	// +kubebuilder:default=own
	Own string `json:"own,omitempty"`
	// Keys are declared twice, by one type.
	Keys Keys `json:"keys,omitempty"`
	// Names are declared twice, with a marker at each.
	// +listType=set
	Names []string `json:"names,omitempty"`
	// Deep is a map of it.
	Deep map[string]Authorization `json:"deep,omitempty"`
	// Inlined brings the same.
	Inlined `json:",inline"`
	// Again brings it once more.
	Again `json:",inline"`
}

// Inlined is inlined.
type Inlined struct {
	// Authorization of the inlined.
	Authorization *Authorization `json:"authorization,omitempty"`
	// Own of the inlined.
	// +kubebuilder:default=own
	Own string `json:"own,omitempty"`
	// Keys of the inlined.
	Keys Keys `json:"keys,omitempty"`
	// Names of the inlined.
	// +listType=set
	Names []string `json:"names,omitempty"`
	// Deep of the inlined.
	Deep map[string]Authorization `json:"deep,omitempty"`
}

// Again is inlined.
type Again struct {
	// Level of again.
	Level Level `json:"level,omitempty"`
	// Authorization of again.
	Authorization *Authorization `json:"authorization,omitempty"`
}

// Keys are a set.
// +listType=set
type Keys []string

// Level has a default of its own.
// +kubebuilder:default=low
type Level string

// Authorization has a default below it.
type Authorization struct {
	// Type has a default.
	// +kubebuilder:default=Bearer
	Type string `json:"type,omitempty"`
	// Level has its type's default.
	Level Level `json:"level,omitempty"`
	// Credentials select a key.
	Credentials *Selector `json:"credentials,omitempty"`
}

// Selector selects a key.
// +structType=atomic
type Selector struct {
	Reference `json:",inline"`
	// Key is the key.
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key"`
}

// Reference has a name with a default.
// +structType=atomic
type Reference struct {
	// Name has a default.
	// +optional
	// +default=""
	// +kubebuilder:default=""
	Name string `json:"name,omitempty"`
}
