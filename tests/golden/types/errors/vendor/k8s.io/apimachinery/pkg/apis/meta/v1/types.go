// Package v1 stands in for the real one: the same names, nothing of its code.
package v1

import "time"

// TypeMeta says what an object is.
type TypeMeta struct {
	// Kind is what it is.
	// +optional
	Kind string `json:"kind,omitempty"`
	// APIVersion is the version
	// it is written in.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
}

// ObjectMeta is what all objects have.
type ObjectMeta struct {
	Name string `json:"name,omitempty"`
}

// ListMeta is what all lists have.
type ListMeta struct {
	// Continue is where the next page starts.
	Continue string `json:"continue,omitempty"`
}

// Time is a moment.
type Time struct{ time.Time }

// MarshalJSON writes it.
func (t Time) MarshalJSON() ([]byte, error) { return nil, nil }

// MicroTime is a finer moment.
type MicroTime struct{ time.Time }

// Duration is how long.
type Duration struct{ time.Duration }

// MarshalJSON writes it.
func (d Duration) MarshalJSON() ([]byte, error) { return nil, nil }

// Fields is a set.
type Fields struct {
	Map map[string]Fields `json:",inline"`
}

// Selector picks objects.
// +structType=atomic
type Selector struct {
	// Labels have to be equal.
	Labels map[string]string `json:"labels,omitempty"`
	// Not turns it around.
	// +optional
	Not *Selector `json:"not,omitempty"`
}
