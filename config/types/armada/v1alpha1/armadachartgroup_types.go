package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ArmadaChartGroupSpec defines the desired state of ArmadaChartGroup.
type ArmadaChartGroupSpec struct {
	// Description says what the group is for.
	// +optional
	Description string `json:"description,omitempty"`
	// Sequenced enables each chart only after the one before it is satisfied.
	// +optional
	Sequenced bool `json:"sequenced,omitempty"`
	// ChartGroup names the ArmadaCharts of the group, in the order in which they are enabled.
	// +kubebuilder:validation:MinItems=1
	ChartGroup []string `json:"chart_group"`
	// TargetState is what should become of the charts.
	// +kubebuilder:default=uninitialized
	TargetState TargetState `json:"target_state,omitempty"`
}

// ArmadaChartGroupStatus defines the observed state of ArmadaChartGroup.
type ArmadaChartGroupStatus struct {
	ArmadaStatus `json:",inline"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=armadachartgroups,shortName=acg
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.actual_state",description="State"
// +kubebuilder:printcolumn:name="Target State",type=string,JSONPath=".spec.target_state",description="Target State"
// +kubebuilder:printcolumn:name="Satisfied",type=boolean,JSONPath=".status.satisfied",description="Satisfied"

// ArmadaChartGroup is a number of charts that belong together.
type ArmadaChartGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ArmadaChartGroupSpec   `json:"spec,omitempty"`
	Status ArmadaChartGroupStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ArmadaChartGroupList contains a list of ArmadaChartGroup.
type ArmadaChartGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ArmadaChartGroup `json:"items"`
}
