// Package controllers has the faults and their twins, each a file's function.
package controllers

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "example.com/torture/api/v1"
)

// Reconciler runs one case.
type Reconciler struct {
	client.Client
	run step

	mutex sync.Mutex
	// shrunk has the sizes before the updates that were seen.
	shrunk map[client.ObjectKey]int
}

// step is one case: what is done in each reconcile of an object.
type step func(*Reconciler, context.Context, *v1.Store) error

// New makes a reconciler of a case.
func New(client_ client.Client, shows string) (*Reconciler, error) {
	run, known := cases[shows]
	if !known {
		return nil, fmt.Errorf("no case %q", shows)
	}
	return &Reconciler{Client: client_, run: run, shrunk: map[client.ObjectKey]int{}}, nil
}

// Watches notes what the cases of missed events remember.
func (r *Reconciler) Watches() []builder.ForOption {
	return []builder.ForOption{builder.WithPredicates(predicate.Funcs{UpdateFunc: r.updated})}
}

func (r *Reconciler) updated(update event.UpdateEvent) bool {
	before, ok := update.ObjectOld.(*v1.Store)
	if ok && update.ObjectNew.(*v1.Store).Spec.Size < before.Spec.Size {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.shrunk[client.ObjectKeyFromObject(before)] = max(before.Spec.Size, r.shrunk[client.ObjectKeyFromObject(before)])
	}
	return true
}

func (r *Reconciler) sizeBefore(store *v1.Store) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.shrunk[client.ObjectKeyFromObject(store)]
}

func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	store := &v1.Store{}
	if err := r.Get(ctx, request.NamespacedName, store); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !store.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(store, finalizer) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.run(r, ctx, store)
}

// child is a ConfigMap of a store.
func (r *Reconciler) child(store *v1.Store, part string) (*corev1.ConfigMap, error) {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: store.Name + "-" + part, Namespace: store.Namespace}}
	return child, controllerutil.SetControllerReference(store, child, r.Scheme())
}

// make creates a child, unless it is there; it says whether it was.
func (r *Reconciler) make(ctx context.Context, store *v1.Store, part string) (bool, error) {
	child, err := r.child(store, part)
	if err != nil {
		return false, err
	}
	err = r.Create(ctx, child)
	return apierrors.IsAlreadyExists(err), client.IgnoreAlreadyExists(err)
}

// write makes a child, or gives it these data.
func (r *Reconciler) write(ctx context.Context, store *v1.Store, part string, data map[string]string) error {
	child, err := r.child(store, part)
	if err != nil {
		return err
	}
	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = data
		return controllerutil.SetControllerReference(store, child, r.Scheme())
	})
	return err
}
