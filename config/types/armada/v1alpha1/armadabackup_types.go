package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ArmadaBackupSpec defines the desired state of ArmadaBackup.
type ArmadaBackupSpec struct {
	// Manifest names the ArmadaManifest to be backed up, with its groups, charts, values and releases.
	// +kubebuilder:validation:MinLength=1
	Manifest string `json:"manifest"`
	// ConfigMap is where the backup goes; the object's name by default.
	// +optional
	ConfigMap string `json:"config_map,omitempty"`
}

// ArmadaBackupStatus defines the observed state of ArmadaBackup.
type ArmadaBackupStatus struct {
	// Phase is Pending, or Completed.
	Phase string `json:"phase"`
	// Reason is what is waited for.
	// +optional
	Reason string `json:"reason,omitempty"`
	// ConfigMap holds the backup.
	// +optional
	ConfigMap string `json:"config_map,omitempty"`
	// Charts is how many charts are in it.
	// +optional
	Charts int32 `json:"charts,omitempty"`
	// CompletedAt is when the backup was taken.
	// +optional
	// +kubebuilder:validation:Format=date-time
	CompletedAt string `json:"completed_at,omitempty"`
	// ObservedGeneration is the generation that the backup was taken for; a changed spec takes a new one.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=armadabackups,shortName=abk
// +kubebuilder:printcolumn:name="Manifest",type=string,JSONPath=".spec.manifest"
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=".status.phase"
// +kubebuilder:printcolumn:name="Charts",type=integer,JSONPath=".status.charts"

// ArmadaBackup keeps a manifest, its groups, charts, values and releases in a ConfigMap.
type ArmadaBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ArmadaBackupSpec   `json:"spec,omitempty"`
	Status ArmadaBackupStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// ArmadaBackupList contains a list of ArmadaBackup.
type ArmadaBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ArmadaBackup `json:"items"`
}
