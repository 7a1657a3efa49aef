package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ArmadaRestoreSpec defines the desired state of ArmadaRestore.
type ArmadaRestoreSpec struct {
	// ConfigMap holds the backup, as an ArmadaBackup wrote it.
	// +kubebuilder:validation:MinLength=1
	ConfigMap string `json:"config_map"`
}

// ArmadaRestoreStatus defines the observed state of ArmadaRestore.
type ArmadaRestoreStatus struct {
	// Phase is Pending, Restoring, or Completed.
	Phase string `json:"phase"`
	// Reason is what is waited for.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Manifest is the ArmadaManifest that was restored.
	// +optional
	Manifest string `json:"manifest,omitempty"`
	// Charts is how many charts were restored.
	// +optional
	Charts int32 `json:"charts,omitempty"`
	// ObservedGeneration is the generation that was restored; a restore happens once for each.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=armadarestores,shortName=ars
// +kubebuilder:printcolumn:name="Manifest",type=string,JSONPath=".status.manifest"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Charts",type=integer,JSONPath=".status.charts"

// ArmadaRestore brings back what an ArmadaBackup kept.
type ArmadaRestore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ArmadaRestoreSpec   `json:"spec,omitempty"`
	Status ArmadaRestoreStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ArmadaRestoreList contains a list of ArmadaRestore.
type ArmadaRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ArmadaRestore `json:"items"`
}
