package controllers

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/findings/api/v1"
)

func init() {
	for _, name := range []string{"finalizer-order", "stuck-deletion", "healthy-slow-deletion", "created-while-deleting", "healthy-cleanup-job"} {
		finalized[name] = true
	}
	add(map[string]step{
		"finalizer-order": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			name := object.Name + "-free"
			if object.DeletionTimestamp.IsZero() {
				return ctrl.Result{}, r.configMap(ctx, object, name, map[string]string{"a": "b"}, false)
			}
			if _, err := r.release(ctx, object); err != nil {
				return ctrl.Result{}, err
			}
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: object.Namespace}}
			return ctrl.Result{}, client.IgnoreNotFound(r.Delete(ctx, child))
		},
		"stuck-deletion": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, nil
		},
		// Waits for something outside, and comes back to look.
		"healthy-slow-deletion": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if object.DeletionTimestamp.IsZero() {
				return ctrl.Result{}, nil
			}
			if time.Since(object.DeletionTimestamp.Time) > 35*time.Second {
				return r.release(ctx, object)
			}
			return ctrl.Result{RequeueAfter: 5 * time.Second}, nil
		},
		// Goes on as if nothing had been said for four seconds.
		"created-while-deleting": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			name := object.Name + "-made"
			if !object.DeletionTimestamp.IsZero() {
				if time.Since(object.DeletionTimestamp.Time) > 4*time.Second {
					return r.release(ctx, object)
				}
				child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: object.Namespace}}
				_ = r.Delete(ctx, child)
				time.Sleep(100 * time.Millisecond)
			}
			return ctrl.Result{RequeueAfter: time.Second}, r.configMap(ctx, object, name, map[string]string{"a": "b"}, true)
		},
		// A Job that cleans up is made when the object goes.
		"healthy-cleanup-job": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if object.DeletionTimestamp.IsZero() {
				return ctrl.Result{}, r.configMap(ctx, object, object.Name+"-made", map[string]string{"a": "b"}, true)
			}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: object.Name + "-cleanup", Namespace: object.Namespace}}
			job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: "Never", Containers: []corev1.Container{{Name: "main", Image: "busybox"}}}
			_ = controllerutil.SetControllerReference(object, job, r.Scheme())
			if err := r.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
				return ctrl.Result{}, err
			}
			if err := r.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil || job.Status.Succeeded == 0 {
				return ctrl.Result{RequeueAfter: time.Second}, client.IgnoreNotFound(err)
			}
			return r.release(ctx, object)
		},
	})
}
