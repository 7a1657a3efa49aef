// Package shared is imported, by name, by another name and by a dot.
package shared

// Port is a port.
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type Port int32

// Mode is how.
// +kubebuilder:validation:Enum=fast;slow
type Mode string

// Endpoint is where.
type Endpoint struct {
	// Host is its name.
	Host string `json:"host"`
	Port Port   `json:"port,omitempty"`
}

// Level marshals to text.
type Level struct{ n int }

// MarshalText writes it.
func (l *Level) MarshalText() (text []byte, err error) { return nil, nil }

// Name is another word for a string.
type Name = string

// Where is another word for an endpoint.
type Where = Endpoint
