// Package @VERSION@ contains the types of the API group @GROUP@, version @VERSION@.
// +kubebuilder:object:generate=true
// +groupName=@GROUP@
package @VERSION@

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// SchemeGroupVersion is the group and version of the types in this package.
	SchemeGroupVersion = schema.GroupVersion{Group: "@GROUP@", Version: "@VERSION@"}

	// GroupVersion is another name of SchemeGroupVersion.
	GroupVersion = SchemeGroupVersion

	// SchemeBuilder collects the types of this package.
	SchemeBuilder = &schemeBuilder{runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
		metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
		return nil
	})}

	// AddToScheme makes the types known to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// schemeBuilder is a runtime.SchemeBuilder that takes types, too: kubebuilder 4.15 registers them by a function, and the
// Operator SDK 1.42 each by itself.
// +kubebuilder:object:generate=false
type schemeBuilder struct {
	runtime.SchemeBuilder
}

// Register takes functions that add to a scheme, and objects whose types belong to it.
func (b *schemeBuilder) Register(all ...any) {
	for _, one := range all {
		switch one := one.(type) {
		case func(*runtime.Scheme) error:
			b.SchemeBuilder.Register(one)
		case runtime.Object:
			b.SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
				scheme.AddKnownTypes(SchemeGroupVersion, one)
				return nil
			})
		default:
			panic("Register takes objects, and functions that add to a scheme")
		}
	}
}
