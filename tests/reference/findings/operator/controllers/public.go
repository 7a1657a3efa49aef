package controllers

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/findings/api/v1"
)

// Healthy code of public operators that opdev once accused, and faults that look like it.
func init() {
	add(map[string]step{
		// One account for all objects of the namespace: it stays when one of them goes.
		"healthy-shared": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "executor", Namespace: object.Namespace}}
			return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, account))
		},
		// 1000m is read into a quantity, and sent as 1.
		"healthy-quantity": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if object.Annotations["seen"] == "" {
				object.Annotations = map[string]string{"seen": "yes"}
				return ctrl.Result{}, r.Update(ctx, object)
			}
			return ctrl.Result{}, nil
		},
		// Each reconcile deletes the pods that do not answer: that is no answer to the change of a label, nor to
		// that of a pod.
		"healthy-cleaner": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if _, err := r.deployment(ctx, object, nil); err != nil {
				return ctrl.Result{}, err
			}
			pods := &corev1.PodList{}
			if err := r.List(ctx, pods, client.InNamespace(object.Namespace), client.MatchingLabels{"app": object.Name}); err != nil {
				return ctrl.Result{}, err
			}
			for i := range pods.Items {
				if err := r.Delete(ctx, &pods.Items[i]); client.IgnoreNotFound(err) != nil {
					return ctrl.Result{}, err
				}
			}
			return ctrl.Result{RequeueAfter: 25 * time.Second}, nil
		},
		// Its object is deleted and made again: garbage collection takes the child, and it is made once more.
		"healthy-again": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"a": "b"}, true)
		},
		// The child is deleted while the only worker waits for something that does not answer.
		"healthy-busy": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if err := r.configMap(ctx, object, object.Name, map[string]string{"a": "b"}, true); err != nil {
				return ctrl.Result{}, err
			}
			select {
			case <-ctx.Done():
			case <-time.After(8 * time.Second):
			}
			return ctrl.Result{RequeueAfter: 2 * time.Second}, nil
		},
		// The Deployments of all objects select the same pods.
		"overlapping-selector": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			_, err := r.deployment(ctx, object, func(child *appsv1.Deployment) {
				labels := map[string]string{"app": "findings"}
				if child.ResourceVersion == "" {
					child.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
				}
				child.Spec.Template.Labels = labels
			})
			return ctrl.Result{}, err
		},
		"healthy-selector": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			_, err := r.deployment(ctx, object, nil)
			return ctrl.Result{}, err
		},
		// All annotations are replaced, also those of others.
		"foreign-metadata": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.annotated(ctx, object, func(child *corev1.ConfigMap) {
				child.Annotations = map[string]string{"findings.example.com/case": object.Name}
			})
		},
		"healthy-metadata": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.annotated(ctx, object, func(child *corev1.ConfigMap) {
				metav1.SetMetaDataAnnotation(&child.ObjectMeta, "findings.example.com/case", object.Name)
			})
		},
	})
}

func (r *Reconciler) annotated(ctx context.Context, object *v1.Case, change func(*corev1.ConfigMap)) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		change(child)
		return controllerutil.SetControllerReference(object, child, r.Scheme())
	})
	return err
}
