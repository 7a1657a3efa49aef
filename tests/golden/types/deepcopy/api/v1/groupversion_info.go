// Package v1 has every form of type.
// +kubebuilder:object:generate=true
// +groupName=park.example.com
package v1
