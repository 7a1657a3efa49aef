package controllers

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/torture/api/v1"
)

const (
	finalizer = "torture.example.com/data"
	// of is the annotation with the uid of the store that data belong to.
	of = "torture.example.com/of"
)

// cases has each fault and, with the same name and `-right`, its twin.
var cases = map[string]step{
	"crash":          markerFirst,
	"crash-right":    eachByItself,
	"past":           dataOfTheDeleted,
	"past-right":     dataOfThisOne,
	"missed":         membersByEvents,
	"missed-right":   membersByNumber,
	"conflict":       errorDropped,
	"conflict-right": errorReturned,
	"lost":           randomName,
	"lost-right":     fixedName,
	"unset":          scheduleOfNothing,
	"unset-right":    scheduleIfAny,
}

// markerFirst takes the marker for the proof that the data are there.
func markerFirst(r *Reconciler, ctx context.Context, store *v1.Store) error {
	there, err := r.make(ctx, store, "marker")
	if err != nil || there {
		return err
	}
	return r.write(ctx, store, "data", map[string]string{"init": "yes"})
}

func eachByItself(r *Reconciler, ctx context.Context, store *v1.Store) error {
	if _, err := r.make(ctx, store, "marker"); err != nil {
		return err
	}
	return r.write(ctx, store, "data", map[string]string{"init": "yes"})
}

// dataOfTheDeleted deletes by name: a cache of the time when a store of the same name went deletes the data of the new
// one.
func dataOfTheDeleted(r *Reconciler, ctx context.Context, store *v1.Store) error {
	return withData(r, ctx, store, func(*corev1.ConfigMap) bool { return true })
}

// dataOfThisOne deletes the data only where they belong to this store.
func dataOfThisOne(r *Reconciler, ctx context.Context, store *v1.Store) error {
	return withData(r, ctx, store, func(data *corev1.ConfigMap) bool { return data.Annotations[of] == string(store.UID) })
}

func withData(r *Reconciler, ctx context.Context, store *v1.Store, deletes func(*corev1.ConfigMap) bool) error {
	data := &corev1.ConfigMap{}
	data.Name, data.Namespace = store.Name+"-data", store.Namespace
	if store.DeletionTimestamp.IsZero() {
		if controllerutil.AddFinalizer(store, finalizer) {
			return r.Update(ctx, store)
		}
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, data, func() error {
			data.Annotations = map[string]string{of: string(store.UID)}
			return controllerutil.SetControllerReference(store, data, r.Scheme())
		})
		return err
	}
	err := r.Get(ctx, client.ObjectKeyFromObject(data), data)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && deletes(data) {
		if err := r.Delete(ctx, data); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(store, finalizer)
	return client.IgnoreNotFound(r.Update(ctx, store))
}

func member(number int) string { return "member-" + strconv.Itoa(number) }

// membersByEvents deletes members of updates that it saw.
func membersByEvents(r *Reconciler, ctx context.Context, store *v1.Store) error {
	for number := range store.Spec.Size {
		if _, err := r.make(ctx, store, member(number)); err != nil {
			return err
		}
	}
	return r.drop(ctx, store, r.sizeBefore(store))
}

// membersByNumber deletes all that are too many.
func membersByNumber(r *Reconciler, ctx context.Context, store *v1.Store) error {
	for number := range store.Spec.Size {
		if _, err := r.make(ctx, store, member(number)); err != nil {
			return err
		}
	}
	return r.drop(ctx, store, store.Spec.Size+10)
}

func (r *Reconciler) drop(ctx context.Context, store *v1.Store, most int) error {
	for number := store.Spec.Size; number < most; number++ {
		one := &corev1.ConfigMap{}
		one.Name, one.Namespace = store.Name+"-"+member(number), store.Namespace
		if err := r.Get(ctx, client.ObjectKeyFromObject(one), one); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return err
		}
		if err := r.Delete(ctx, one); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// errorDropped goes on after any error, and nothing tries again.
func errorDropped(r *Reconciler, ctx context.Context, store *v1.Store) error {
	_ = errorReturned(r, ctx, store)
	return nil
}

func errorReturned(r *Reconciler, ctx context.Context, store *v1.Store) error {
	return r.write(ctx, store, "settings", map[string]string{"size": strconv.Itoa(store.Spec.Size)})
}

// randomName makes another child where it did not hear of the first one.
func randomName(r *Reconciler, ctx context.Context, store *v1.Store) error {
	return named(r, ctx, store, "")
}

func fixedName(r *Reconciler, ctx context.Context, store *v1.Store) error {
	return named(r, ctx, store, store.Name+"-token")
}

func named(r *Reconciler, ctx context.Context, store *v1.Store, name string) error {
	if store.Status.Size > 0 {
		return nil
	}
	child, err := r.child(store, "token")
	if err != nil {
		return err
	}
	if child.Name = name; name == "" {
		child.GenerateName = store.Name + "-token-"
	}
	if err := r.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	store.Status.Size = 1
	return r.Status().Update(ctx, store)
}

// scheduleOfNothing takes it for granted that there is a backup.
func scheduleOfNothing(r *Reconciler, ctx context.Context, store *v1.Store) error {
	return r.write(ctx, store, "backup", map[string]string{"schedule": store.Spec.Backup.Schedule})
}

func scheduleIfAny(r *Reconciler, ctx context.Context, store *v1.Store) error {
	schedule := "never"
	if store.Spec.Backup != nil {
		schedule = fmt.Sprint(store.Spec.Backup.Schedule)
	}
	return r.write(ctx, store, "backup", map[string]string{"schedule": schedule})
}
