// Package v1alpha1 contains API Schema definitions for the app v1alpha1 API group.
// +kubebuilder:object:generate=true
// +groupName=app.example.com
package v1alpha1
