
// The rules that the reconciler needs. `opdev rbac` writes them to config/rbac/role.yaml.
// +kubebuilder:rbac:groups=@GROUP@,resources=@PLURAL@,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=@GROUP@,resources=@PLURAL@/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=@GROUP@,resources=@PLURAL@/finalizers,verbs=update
// +kubebuilder:rbac:groups=core,resources=configmaps,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=core,resources=events,verbs=create;patch
