package v1alpha1

// TargetState says whether something should be there. What nobody has enabled yet is uninitialized.
// +kubebuilder:validation:Enum=uninitialized;deployed;uninstalled
type TargetState string

const (
	// StateUninitialized waits until somebody asks for it.
	StateUninitialized TargetState = "uninitialized"
	// StateDeployed is there.
	StateDeployed TargetState = "deployed"
	// StateUninstalled is gone again.
	StateUninstalled TargetState = "uninstalled"
)

// ArmadaStatus is what the status of a chart, a group and a manifest have in common.
type ArmadaStatus struct {
	// ActualState is the state that was observed last.
	ActualState string `json:"actual_state"`
	// Satisfied indicates that the actual state is the target state.
	Satisfied bool `json:"satisfied"`
	// Reason is what is waited for, or why something failed.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Conditions are the states that the resource has been through.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []ArmadaCondition `json:"conditions,omitempty"`
}

// ArmadaCondition is one condition of a chart, a group or a manifest.
type ArmadaCondition struct {
	// Type is the state in question.
	Type string `json:"type"`
	// Status is True, False or Unknown.
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status string `json:"status"`
	// Reason is one word for why.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says it for people.
	// +optional
	Message string `json:"message,omitempty"`
	// ObservedGeneration is the generation that it was set for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastTransitionTime is when the status changed last.
	// +optional
	// +kubebuilder:validation:Format=date-time
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
}
