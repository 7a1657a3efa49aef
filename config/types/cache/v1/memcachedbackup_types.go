package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MemcachedBackupSpec defines the desired state of MemcachedBackup.
type MemcachedBackupSpec struct {
	// Size is the size of the memcached deployment.
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`
}

// MemcachedBackupStatus defines the observed state of MemcachedBackup.
type MemcachedBackupStatus struct {
	// Nodes are the names of the memcached pods.
	Nodes []string `json:"nodes"`
}

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=".spec.size"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"

// MemcachedBackup is a memcached that stands beside the one of the chart.
type MemcachedBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemcachedBackupSpec   `json:"spec,omitempty"`
	Status MemcachedBackupStatus `json:"status,omitempty"`
}

// +kubebuilder:object:root=true

// MemcachedBackupList contains a list of MemcachedBackup.
type MemcachedBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MemcachedBackup `json:"items"`
}

// +kubebuilder:rbac:groups=cache.my.domain,resources=memcachedbackups,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=cache.my.domain,resources=memcachedbackups/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=cache.my.domain,resources=memcachedbackups/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=core,resources=pods,verbs=get;list;watch
