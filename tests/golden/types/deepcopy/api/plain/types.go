// Package plain asks for nothing as a whole.
package plain

// In is marked.
// +kubebuilder:object:generate=true
type In struct {
	Names []string
}

// Out is not.
type Out struct {
	Names []string
}
