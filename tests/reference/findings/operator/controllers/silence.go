package controllers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "example.com/findings/api/v1"
)

// What is not heard, not said or not passed on.
func init() {
	finalized["stuck-deletion-plain"] = true
	add(map[string]step{
		"result-ignored": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: 30 * time.Second}, errors.New("the license server does not answer")
		},
		// The same without an error, and with one that is not tried again.
		"healthy-result": func(_ *Reconciler, _ context.Context, object *v1.Case) (ctrl.Result, error) {
			if time.Since(object.CreationTimestamp.Time) < 20*time.Second {
				return ctrl.Result{RequeueAfter: 5 * time.Second}, nil
			}
			return ctrl.Result{RequeueAfter: 30 * time.Second}, reconcile.TerminalError(errors.New("the license is not valid"))
		},
		// The controller `forgetful` returns the NotFound of its first read.
		"own-object-gone": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"a": "b"}, true)
		},
		"healthy-gone": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"a": "b"}, true)
		},
		// Ready once, and then nothing works any more.
		"failure-not-told": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if len(object.Status.Conditions) == 0 {
				return ctrl.Result{RequeueAfter: time.Second}, r.ready(ctx, object, true)
			}
			return ctrl.Result{}, errors.New("the license server does not answer")
		},
		// For a while nothing works, and the status says so.
		"healthy-failure": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if time.Since(object.CreationTimestamp.Time) > 25*time.Second {
				return ctrl.Result{}, r.ready(ctx, object, true)
			}
			if err := r.ready(ctx, object, false); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, errors.New("the license server does not answer")
		},
		// Variables of the pods come from a ConfigMap that changes with the spec.
		"config-not-rolled": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configured(ctx, object, nil)
		},
		"healthy-rolled": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			sum := fmt.Sprintf("%x", sha256.Sum256([]byte(object.Spec.Env["MODE"])))
			return ctrl.Result{}, r.configured(ctx, object, map[string]string{"findings.example.com/config": sum})
		},
		// Something else rolls the pods.
		"healthy-reloader": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configured(ctx, object, map[string]string{"reloader.stakater.com/auto": "true"})
		},
		// It restarts the pods itself, by deleting them.
		"healthy-restart": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			config := &corev1.ConfigMap{}
			err := r.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, config)
			changed := err == nil && config.Data["MODE"] != object.Spec.Env["MODE"]
			if err := r.configured(ctx, object, nil); err != nil || !changed {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, r.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(object.Namespace), client.MatchingLabels{"app": object.Name})
		},
		// The same as referenced-unwatched, read past the cache.
		"referenced-live": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			named := &corev1.Secret{}
			key := types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.Child}
			if err := r.direct.Get(ctx, key, named); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"copy": string(named.Data["mode"])}, true)
		},
		// Counts what it lists, and does not watch it.
		"referenced-listed": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			secrets := &corev1.SecretList{}
			if err := r.List(ctx, secrets, client.InNamespace(object.Namespace)); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"secrets": fmt.Sprint(len(secrets.Items))}, true)
		},
		// The status alone says what it found.
		"referenced-status": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			named := &corev1.ConfigMap{}
			if err := r.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.Child}, named); err != nil {
				return ctrl.Result{}, err
			}
			if object.Status.Phase == named.Data["mode"] {
				return ctrl.Result{}, nil
			}
			object.Status.Phase = named.Data["mode"]
			return ctrl.Result{}, r.Status().Update(ctx, object)
		},
		// Read to see whether it is there; its content is not used.
		"healthy-referenced": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			named := &corev1.ConfigMap{}
			if err := r.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.Child}, named); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"a": "b"}, true)
		},
		// Looked at again each 20 s: late by design.
		"healthy-referenced-poll": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			named := &corev1.ConfigMap{}
			if err := r.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: object.Spec.Child}, named); err != nil {
				return ctrl.Result{}, err
			}
			data := map[string]string{"copy": named.Data["mode"]}
			return ctrl.Result{RequeueAfter: 20 * time.Second}, r.configMap(ctx, object, object.Name, data, true)
		},
		// A phase and no look at the pods.
		"ready-phase": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if _, err := r.deployment(ctx, object, nil); err != nil {
				return ctrl.Result{}, client.IgnoreAlreadyExists(err)
			}
			return ctrl.Result{}, r.phase(ctx, object, "Available")
		},
		"healthy-phase": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child, err := r.deployment(ctx, object, nil)
			if err != nil {
				return ctrl.Result{}, client.IgnoreAlreadyExists(err)
			}
			if child.Status.ObservedGeneration < child.Generation || child.Status.ReadyReplicas < 1 {
				return ctrl.Result{}, r.phase(ctx, object, "Pending")
			}
			return ctrl.Result{}, r.phase(ctx, object, "Available")
		},
		// The name of the object tells two custom resources not apart; nothing wakes the one that lost.
		"name-collision-once": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, "shared", map[string]string{"of": object.Name}, false)
		},
		// One object for all of them, with their number.
		"healthy-sum": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			all := &v1.CaseList{}
			if err := r.List(ctx, all, client.InNamespace(object.Namespace)); err != nil {
				return ctrl.Result{}, err
			}
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "sum", Namespace: object.Namespace}}
			err := r.Get(ctx, client.ObjectKeyFromObject(child), child)
			if err == nil && child.Data["count"] != fmt.Sprint(len(all.Items)) {
				child.Data = map[string]string{"count": fmt.Sprint(len(all.Items))}
				return ctrl.Result{}, r.Update(ctx, child)
			}
			if client.IgnoreNotFound(err) != nil || err == nil {
				return ctrl.Result{}, err
			}
			child.Labels = map[string]string{"findings.example.com/of": "all-" + object.Name}
			child.Data = map[string]string{"count": fmt.Sprint(len(all.Items))}
			return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, child))
		},
		// Looks twice whether it has one, the second time a moment after it has made it.
		"duplicate": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.twice(ctx, object, metav1.ObjectMeta{GenerateName: object.Name + "-"})
		},
		// The same with a fixed name.
		"healthy-twice": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.twice(ctx, object, metav1.ObjectMeta{Name: object.Name + "-one"})
		},
		// A finalizer without a slash that nobody takes off.
		"stuck-deletion-plain": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, nil
		},
	})
}

// configured writes a ConfigMap, and a Deployment that takes it as variables.
func (r *Reconciler) configured(ctx context.Context, object *v1.Case, notes map[string]string) error {
	data := map[string]string{"MODE": object.Spec.Env["MODE"]}
	if err := r.configMap(ctx, object, object.Name, data, true); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	_, err := r.deployment(ctx, object, func(child *appsv1.Deployment) {
		child.Spec.Template.Annotations = notes
		from := corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: object.Name}}
		child.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &from}}
	})
	return client.IgnoreAlreadyExists(err)
}

func (r *Reconciler) phase(ctx context.Context, object *v1.Case, phase string) error {
	if object.Status.Phase == phase && object.Status.ObservedGeneration == object.Generation {
		return nil
	}
	before := client.MergeFrom(object.DeepCopy())
	object.Status.Phase, object.Status.ObservedGeneration = phase, object.Generation
	return r.Status().Patch(ctx, object, before)
}

func (r *Reconciler) twice(ctx context.Context, object *v1.Case, meta metav1.ObjectMeta) error {
	for range 2 {
		children := &corev1.ConfigMapList{}
		labels := client.MatchingLabels{"findings.example.com/case": object.Name}
		if err := r.List(ctx, children, client.InNamespace(object.Namespace), labels); err != nil {
			return err
		}
		if len(children.Items) > 0 {
			continue
		}
		child := &corev1.ConfigMap{ObjectMeta: meta}
		child.Namespace, child.Labels = object.Namespace, labels
		child.Data = map[string]string{"a": "b"}
		if err := ctrl.SetControllerReference(object, child, r.Scheme()); err != nil {
			return err
		}
		if err := r.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return nil
}
