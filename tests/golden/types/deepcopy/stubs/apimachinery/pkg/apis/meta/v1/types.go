// Package v1 stands in for the real one.
package v1

// TypeMeta has texts alone.
type TypeMeta struct {
	Kind       string
	APIVersion string
}

// ObjectMeta is deep.
type ObjectMeta struct {
	Name   string
	Labels map[string]string
}

// ListMeta is deep.
type ListMeta struct {
	Remaining *int64
}

// Time has methods that were written by hand.
type Time struct {
	inner *int64
}

// DeepCopyInto copies.
func (t *Time) DeepCopyInto(out *Time) {
	*out = *t
}

// Duration is shallow.
type Duration struct {
	Nanoseconds int64
}

// Quantity is copied by value.
type Quantity struct {
	parts []byte
}

// DeepCopy copies.
func (q Quantity) DeepCopy() Quantity {
	return q
}

// Selector is copied by pointer.
type Selector struct {
	parts []byte
}

// DeepCopy copies.
func (s *Selector) DeepCopy() *Selector {
	return s
}
