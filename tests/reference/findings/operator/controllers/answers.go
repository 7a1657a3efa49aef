package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/findings/api/v1"
)

func optional() *unstructured.Unstructured {
	kind := &unstructured.Unstructured{}
	kind.SetAPIVersion("cert-manager.io/v1")
	kind.SetKind("Certificate")
	return kind
}

func init() {
	add(map[string]step{
		"kind-missing": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.Get(ctx, client.ObjectKeyFromObject(object), optional())
		},
		// The cache holds all roles of the cluster, and one is its own.
		"cache-too-wide": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: object.Namespace + "-" + object.Name}}
			_, err := controllerutil.CreateOrUpdate(ctx, r.Client, role, func() error {
				role.Labels = map[string]string{"findings.example.com/case": object.Name}
				return nil
			})
			return ctrl.Result{RequeueAfter: 20 * time.Second}, err
		},
		// It does without.
		"healthy-optional": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			err := r.Get(ctx, client.ObjectKeyFromObject(object), optional())
			if meta.IsNoMatchError(err) {
				err = nil
			}
			return ctrl.Result{RequeueAfter: 5 * time.Second}, err
		},
		"refused-write": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			_, err := r.deployment(ctx, object, func(child *appsv1.Deployment) {
				labels := map[string]string{"app": fmt.Sprint(object.Name, time.Now().UnixNano())}
				child.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
				child.Spec.Template.Labels = labels
			})
			return ctrl.Result{RequeueAfter: 2 * time.Second}, err
		},
		"pruned-field": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &unstructured.Unstructured{}
			child.SetAPIVersion("findings.example.com/v1")
			child.SetKind("Case")
			child.SetName(object.Name + "-child")
			child.SetNamespace(object.Namespace)
			_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
				_ = unstructured.SetNestedField(child.Object, "healthy-nothing", "spec", "shows")
				return unstructured.SetNestedField(child.Object, "red", "spec", "colour")
			})
			return ctrl.Result{}, err
		},
		"healthy-nothing": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, nil
		},
		"lost-status": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if object.Annotations["seen"] == "" || object.Status.Phase != "Ready" {
				object.Annotations = map[string]string{"seen": "yes"}
				object.Status.Phase = "Ready"
				return ctrl.Result{RequeueAfter: 3 * time.Second}, r.Update(ctx, object)
			}
			return ctrl.Result{}, nil
		},
		// The same, and the status is written, too.
		"healthy-both": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if object.Status.Phase == "Ready" {
				return ctrl.Result{}, nil
			}
			object.Status.Phase = "Ready"
			object.Annotations = map[string]string{"seen": "yes"}
			status := object.Status.DeepCopy()
			err := r.Update(ctx, object)
			if err == nil {
				object.Status = *status
				err = r.Status().Update(ctx, object)
			}
			if apierrors.IsConflict(err) {
				return ctrl.Result{RequeueAfter: time.Second}, nil
			}
			return ctrl.Result{}, err
		},
		"no-observed-generation": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if object.Status.Phase == "Ready" && object.Status.ObservedGeneration == 1 {
				return ctrl.Result{}, nil
			}
			object.Status.Phase, object.Status.ObservedGeneration = "Ready", 1
			return ctrl.Result{}, r.Status().Update(ctx, object)
		},
		"same-error": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			time.Sleep(20 * time.Millisecond)
			return ctrl.Result{}, errors.New("the license server does not answer")
		},
		// Writes, and writes again from a cache that has not seen it yet.
		"stale-read": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if object.Annotations["tries"] == "done" {
				return ctrl.Result{}, nil
			}
			for try := range 50 {
				object.Annotations = map[string]string{"tries": fmt.Sprint(try)}
				if err := r.Update(ctx, object); err != nil {
					return ctrl.Result{}, err
				}
				read := &v1.Case{}
				if err := r.Get(ctx, client.ObjectKeyFromObject(object), read); err != nil {
					return ctrl.Result{}, err
				}
				object = read
			}
			object.Annotations = map[string]string{"tries": "done"}
			return ctrl.Result{}, r.Update(ctx, object)
		},
		// Reads, takes its time, and puts all of it back without a version.
		"lost-update": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.ConfigMap{}
			key := types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.Child}
			if err := r.Get(ctx, key, child); err != nil {
				return ctrl.Result{}, err
			}
			time.Sleep(1500 * time.Millisecond)
			child.ResourceVersion = ""
			child.Data["n"] = time.Now().Format("05.000")
			return ctrl.Result{RequeueAfter: 3 * time.Second}, r.Update(ctx, child)
		},
		// A call that fails is taken for an empty answer.
		"error-swallowed": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name", Namespace: object.Namespace}}
			_ = r.Create(ctx, child)
			meta := metav1.Condition{Type: "Ready", Status: "True", Reason: "Done", LastTransitionTime: metav1.Now()}
			if len(object.Status.Conditions) > 0 {
				return ctrl.Result{}, nil
			}
			object.Status.Conditions = []metav1.Condition{meta}
			object.Status.ObservedGeneration = object.Generation
			return ctrl.Result{}, r.Status().Update(ctx, object)
		},
		// A kind that Kubernetes calls deprecated.
		"deprecated-api": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
			if err := ctrl.SetControllerReference(object, child, r.Scheme()); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, child))
		},
		// Ready without a look at the pods.
		"ready-too-early": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if _, err := r.deployment(ctx, object, nil); err != nil {
				return ctrl.Result{}, client.IgnoreAlreadyExists(err)
			}
			return ctrl.Result{}, r.ready(ctx, object, true)
		},
		"healthy-ready": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child, err := r.deployment(ctx, object, nil)
			if err != nil {
				return ctrl.Result{}, client.IgnoreAlreadyExists(err)
			}
			isReady := child.Status.ObservedGeneration == child.Generation && child.Status.ReadyReplicas == 1
			return ctrl.Result{}, r.ready(ctx, object, isReady)
		},
		// Reads an object that its spec names, and does not watch it.
		"referenced-unwatched": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			named := &corev1.ConfigMap{}
			key := types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.Child}
			if err := r.Get(ctx, key, named); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"copy": named.Data["mode"]}, true)
		},
		// The same object is read from the API server again and again.
		"call-budget": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			for range 4 {
				if err := r.direct.Get(ctx, client.ObjectKeyFromObject(object), &v1.Case{}); err != nil {
					return ctrl.Result{}, err
				}
			}
			return ctrl.Result{}, nil
		},
	})
}

func (r *Reconciler) ready(ctx context.Context, object *v1.Case, ready bool) error {
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	if have := object.Status.Conditions; len(have) == 1 && have[0].Status == status && object.Status.ObservedGeneration == object.Generation {
		return nil
	}
	object.Status.ObservedGeneration = object.Generation
	object.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: status, Reason: "Looked", LastTransitionTime: metav1.Now(),
		ObservedGeneration: object.Generation,
	}}
	return r.Status().Update(ctx, object)
}
