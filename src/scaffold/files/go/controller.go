package @CONTROLLERS@

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	@ALIAS@ "@PACKAGE@"
)

// @KIND@Reconciler reconciles objects of the kind @KIND@.
type @KIND@Reconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// What the manager may do. `make manifests` writes config/rbac/role.yaml from these lines.
// +kubebuilder:rbac:groups=@GROUP@,resources=@PLURAL@,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=@GROUP@,resources=@PLURAL@/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=@GROUP@,resources=@PLURAL@/finalizers,verbs=update
// +kubebuilder:rbac:groups=core,resources=configmaps,verbs=get;list;watch;create;update

// Reconcile makes what one @KIND@ asks for: a ConfigMap with its message. It is called when the @KIND@ or the ConfigMap
// changes, and again, later each time, after an error. Replace the ConfigMap with your own objects.
func (r *@KIND@Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj @ALIAS@.@KIND@
	if err := r.Get(ctx, req.NamespacedName, &obj); err != nil {
		// It was deleted; Kubernetes deletes what it owns.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !obj.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: obj.Name + "-message", Namespace: @NAMESPACE@}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, configMap, func() error {
		configMap.Data = map[string]string{"message": obj.Spec.Message}
		return controllerutil.SetControllerReference(&obj, configMap, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	logf.FromContext(ctx).Info("Reconciled", "configMap", configMap.Name, "result", done)

	before := obj.DeepCopy()
	obj.Status.ObservedGeneration = obj.Generation
	meta.SetStatusCondition(&obj.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "Written",
		Message:            "ConfigMap " + configMap.Name,
		ObservedGeneration: obj.Generation,
	})
	if equality.Semantic.DeepEqual(before.Status, obj.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Patch(ctx, &obj, client.MergeFrom(before))
}

// SetupWithManager says what calls Reconcile.
func (r *@KIND@Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&@ALIAS@.@KIND@{}).
		Owns(&corev1.ConfigMap{}).
		Named("@CONTROLLER@").
		Complete(r)
}
