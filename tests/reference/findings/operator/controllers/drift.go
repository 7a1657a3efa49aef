package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/findings/api/v1"
)

// Values that reach one child and not another one, and values that somebody else changes.
func init() {
	add(map[string]step{
		// One child follows spec.child, the other one keeps the value that it was made with.
		"change-half-applied": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			data := map[string]string{"child": object.Spec.Child}
			if err := r.configMap(ctx, object, object.Name, data, true); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, r.once(ctx, object, object.Name+"-copy", data)
		},
		// The other child says on purpose with what it all began.
		"healthy-half-applied": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if err := r.configMap(ctx, object, object.Name, map[string]string{"child": object.Spec.Child}, true); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, r.once(ctx, object, object.Name+"-first", map[string]string{"began": object.Spec.Child})
		},
		// One child after the other, with a pause between them.
		"healthy-half-later": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			data := map[string]string{"child": object.Spec.Child}
			first := &corev1.ConfigMap{}
			err := r.Get(ctx, client.ObjectKeyFromObject(object), first)
			if client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
			if err != nil || first.Data["child"] != object.Spec.Child {
				if err := r.configMap(ctx, object, object.Name, data, true); err != nil {
					return ctrl.Result{}, err
				}
				return ctrl.Result{RequeueAfter: 3 * time.Second}, nil
			}
			return ctrl.Result{}, r.configMap(ctx, object, object.Name+"-second", data, true)
		},
		// The child is written when spec.child changes, and never compared with what is there.
		"drift-left": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
			_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
				if child.Annotations["findings.example.com/for"] == object.Spec.Child {
					return nil
				}
				metav1.SetMetaDataAnnotation(&child.ObjectMeta, "findings.example.com/for", object.Spec.Child)
				child.Data = map[string]string{"child": object.Spec.Child}
				return controllerutil.SetControllerReference(object, child, r.Scheme())
			})
			return ctrl.Result{}, err
		},
		// What somebody else has changed is put back.
		"healthy-drift": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"child": object.Spec.Child}, true)
		},
		// Made once, and everybody may change it.
		"healthy-create-once": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.madeOnce(ctx, object)
		},
	})
}

// once makes a child, and leaves one that is there alone.
func (r *Reconciler) once(ctx context.Context, object *v1.Case, name string, data map[string]string) error {
	child := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: name}, child)
	if !apierrors.IsNotFound(err) {
		return err
	}
	child = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: object.Namespace}, Data: data}
	if err := controllerutil.SetControllerReference(object, child, r.Scheme()); err != nil {
		return err
	}
	return client.IgnoreAlreadyExists(r.Create(ctx, child))
}
