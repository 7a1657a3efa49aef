// +kubebuilder:object:generate=true
// +groupName=kinds.example.com
package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Thing is a thing of v1beta1.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=thingies,singular=thingy,shortName=th;thi,categories={all,example},scope=Cluster
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Is it?",priority=1
// +kubebuilder:printcolumn:name=Age,type=date,format=date-time,JSONPath=.metadata.creationTimestamp
// +kubebuilder:selectablefield:JSONPath=.spec.kind
// +kubebuilder:selectablefield:JSONPath=`.spec.other`
// +kubebuilder:metadata:annotations="example.com/a=1",labels=app=thing
// +kubebuilder:metadata:annotations={"example.com/b=x=y","example.com/c="}
// +kubebuilder:deprecatedversion:warning="use v1"
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ThingSpec   `json:"spec,omitempty"`
	Status ThingStatus `json:"status,omitempty"`
}

// ThingSpec is wanted.
type ThingSpec struct {
	Replicas *int32 `json:"replicas,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Other    string `json:"other,omitempty"`
}

// ThingStatus is seen.
type ThingStatus struct {
	Replicas int32  `json:"replicas,omitempty"`
	Selector string `json:"selector,omitempty"`
}
