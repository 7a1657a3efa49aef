// Package v1alpha1 contains API Schema definitions for the armada v1alpha1 API group.
// +kubebuilder:object:generate=true
// +groupName=armada.airshipit.org
package v1alpha1
