package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ArmadaManifestSpec defines the desired state of ArmadaManifest.
type ArmadaManifestSpec struct {
	// ReleasePrefix is kept for the manifests of airship-armada; the names of releases are those the charts say.
	// +optional
	ReleasePrefix string `json:"release_prefix,omitempty"`
	// ChartGroups names the ArmadaChartGroups of the manifest, in the order in which they are enabled.
	// +kubebuilder:validation:MinItems=1
	ChartGroups []string `json:"chart_groups"`
	// TargetState is what should become of the groups.
	// +kubebuilder:default=uninitialized
	TargetState TargetState `json:"target_state,omitempty"`
}

// ArmadaManifestStatus defines the observed state of ArmadaManifest.
type ArmadaManifestStatus struct {
	ArmadaStatus `json:",inline"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=armadamanifests,shortName=amf
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.actual_state",description="State"
// +kubebuilder:printcolumn:name="Target State",type=string,JSONPath=".spec.target_state",description="Target State"
// +kubebuilder:printcolumn:name="Satisfied",type=boolean,JSONPath=".status.satisfied",description="Satisfied"

// ArmadaManifest is a whole deployment: groups of charts in order.
type ArmadaManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ArmadaManifestSpec   `json:"spec,omitempty"`
	Status ArmadaManifestStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ArmadaManifestList contains a list of ArmadaManifest.
type ArmadaManifestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ArmadaManifest `json:"items"`
}
