// Package controllers has the cases, by family.
package controllers

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/findings/api/v1"
)

const finalizer = "findings.example.com/cleanup"

// plain is a finalizer as many programs name theirs.
const plain = "delete-cases-in-order"

// Reconciler runs the case that an object names.
type Reconciler struct {
	client.Client
	direct   client.Reader
	recorder record.EventRecorder
	name     string
	selected func(string) bool
}

// step is one case: what is done in each reconcile of an object.
type step func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error)

// cases holds all of them; each file adds its own.
var cases = map[string]step{}

// finalized are the cases with a finalizer, which they take off themselves.
var finalized = map[string]bool{}

func add(more map[string]step) {
	for name, step := range more {
		cases[name] = step
	}
}

func New(manager ctrl.Manager) *Reconciler {
	return &Reconciler{
		Client: manager.GetClient(), direct: manager.GetAPIReader(),
		recorder: manager.GetEventRecorderFor("findings"),
	}
}

// As is the reconciler of one controller, for the cases that it has.
func (r *Reconciler) As(name string, selected func(string) bool) *Reconciler {
	named := *r
	named.name, named.selected = name, selected
	return &named
}

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1.Case{}
	if err := r.Get(ctx, request.NamespacedName, object); err != nil {
		if r.name == "forgetful" {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.selected(object.Spec.Shows) {
		return ctrl.Result{}, nil
	}
	run, known := cases[object.Spec.Shows]
	if !known {
		return ctrl.Result{}, fmt.Errorf("no case %q", object.Spec.Shows)
	}
	deleted := !object.DeletionTimestamp.IsZero()
	name := finalizer
	if object.Spec.Shows == "stuck-deletion-plain" {
		name = plain
	}
	if finalized[object.Spec.Shows] && !deleted && controllerutil.AddFinalizer(object, name) {
		return ctrl.Result{}, r.Update(ctx, object)
	}
	if deleted && !finalized[object.Spec.Shows] {
		return ctrl.Result{}, nil
	}
	return run(r, ctx, object)
}

func (r *Reconciler) release(ctx context.Context, object *v1.Case) (ctrl.Result, error) {
	controllerutil.RemoveFinalizer(object, finalizer)
	return ctrl.Result{}, r.Update(ctx, object)
}

// configMap writes a child; owned says whether it carries a controller reference.
func (r *Reconciler) configMap(ctx context.Context, object *v1.Case, name string, data map[string]string, owned bool) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: object.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = data
		if !owned {
			return nil
		}
		return controllerutil.SetControllerReference(object, child, r.Scheme())
	})
	return err
}

// deployment writes a child whose containers the caller may change.
func (r *Reconciler) deployment(ctx context.Context, object *v1.Case, change func(*appsv1.Deployment)) (*appsv1.Deployment, error) {
	child := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		labels := map[string]string{"app": object.Name}
		if child.Spec.Selector == nil {
			child.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		}
		child.Spec.Template.Labels = labels
		if len(child.Spec.Template.Spec.Containers) != 1 {
			child.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
		}
		child.Spec.Template.Spec.Containers[0].Image = "nginx:1"
		if change != nil {
			change(child)
		}
		return controllerutil.SetControllerReference(object, child, r.Scheme())
	})
	return child, err
}
