// Package v1 is another one of this name.
package v1

import "k8s.io/apimachinery/pkg/runtime"

// Port is a number.
type Port int32

// Ports are numbers.
type Ports []Port

// Deep is deep.
type Deep struct {
	Extension *runtime.RawExtension
	Ports     Ports
}

// Flat is flat.
type Flat struct {
	Port  Port
	Other struct {
		Name string
	}
}
