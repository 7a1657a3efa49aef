package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ArmadaChartSource says where the chart is.
type ArmadaChartSource struct {
	// Type is local for a folder and tar for an archive, both inside the project.
	// +kubebuilder:validation:Enum=local;tar
	// +kubebuilder:default=local
	Type string `json:"type,omitempty"`
	// Location is the path of the folder or archive, relative to the project's root.
	// +kubebuilder:validation:MinLength=1
	Location string `json:"location"`
	// Subpath is the path of the chart inside the location.
	// +optional
	Subpath string `json:"subpath,omitempty"`
}

// ArmadaChartSpec defines the desired state of ArmadaChart.
type ArmadaChartSpec struct {
	// ChartName is a name for the chart.
	// +optional
	ChartName string `json:"chart_name,omitempty"`
	// Release is the name of the release; the object's name by default.
	// +kubebuilder:validation:MaxLength=53
	// +optional
	Release string `json:"release,omitempty"`
	// Namespace is where the release goes; the object's namespace by default.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Source is the chart.
	Source ArmadaChartSource `json:"source"`
	// Values override the values of the chart.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
	// TargetState is what should become of the chart. A disabled chart stays out until somebody patches this.
	// +kubebuilder:default=uninitialized
	TargetState TargetState `json:"target_state,omitempty"`
}

// ArmadaChartStatus defines the observed state of ArmadaChart.
type ArmadaChartStatus struct {
	ArmadaStatus `json:",inline"`
	// Revision is the newest revision of the release.
	// +optional
	Revision int64 `json:"revision,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=armadacharts,shortName=act
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.actual_state",description="State"
// +kubebuilder:printcolumn:name="Target State",type=string,JSONPath=".spec.target_state",description="Target State"
// +kubebuilder:printcolumn:name="Satisfied",type=boolean,JSONPath=".status.satisfied",description="Satisfied"

// ArmadaChart is one Helm chart to be installed.
type ArmadaChart struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ArmadaChartSpec   `json:"spec,omitempty"`
	Status ArmadaChartStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ArmadaChartList contains a list of ArmadaChart.
type ArmadaChartList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ArmadaChart `json:"items"`
}

// +kubebuilder:rbac:groups=armada.airshipit.org,resources=armadacharts;armadachartgroups;armadamanifests;armadabackups;armadarestores,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=armada.airshipit.org,resources=armadacharts/status;armadachartgroups/status;armadamanifests/status;armadabackups/status;armadarestores/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=armada.airshipit.org,resources=armadacharts/finalizers;armadachartgroups/finalizers;armadamanifests/finalizers,verbs=update
// +kubebuilder:rbac:groups=core,resources=configmaps;secrets;services;serviceaccounts,verbs=get;list;watch;create;update;patch;delete
