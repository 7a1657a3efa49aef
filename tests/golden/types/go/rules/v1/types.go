// Package v1 has rules with all their arguments.
// +groupName=rules.example.com
package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RuledSpec has rules.
// +kubebuilder:validation:XValidation:rule="self.a < self.b",messageExpression="'a is ' + string(self.a)",reason=FieldValueForbidden,fieldPath=".a"
// +kubebuilder:validation:XValidation:rule="!oldSelf.hasValue() || self.a == oldSelf.value().a",optionalOldSelf=true,message=`kept`
type RuledSpec struct {
	A int `json:"a"`
	// +kubebuilder:validation:XValidation:rule="self > 1",reason="FieldValueInvalid"
	B int `json:"b"`
}

// Ruled is ruled.
type Ruled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              RuledSpec `json:"spec"`
}
