// Package @VERSION@ contains the types of the API group @GROUP@, version @VERSION@.
// +kubebuilder:object:generate=true
// +groupName=@GROUP@
package @VERSION@
