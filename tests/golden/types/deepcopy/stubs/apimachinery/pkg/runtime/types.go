// Package runtime stands in for the real one.
package runtime

// Object is an interface.
type Object interface {
	DeepCopyObject() Object
}

// RawExtension has generated methods only.
type RawExtension struct {
	Raw []byte
}
