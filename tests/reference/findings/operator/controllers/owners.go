package controllers

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/findings/api/v1"
)

func init() {
	finalized["healthy-ownerless"] = true
	add(map[string]step{
		"missing-owner": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"a": "b"}, false)
		},
		// No owner, but the finalizer deletes it.
		"healthy-ownerless": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			name := object.Name + "-free"
			if object.DeletionTimestamp.IsZero() {
				return ctrl.Result{}, r.configMap(ctx, object, name, map[string]string{"a": "b"}, false)
			}
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: object.Namespace}}
			if err := r.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
			return r.release(ctx, object)
		},
		// A Secret that outlives its object, and says whose it is.
		"healthy-kept": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: object.Name + "-keep", Namespace: object.Namespace}}
			_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
				child.Labels = map[string]string{"findings.example.com/case": object.Name}
				child.Data = map[string][]byte{"a": []byte("b")}
				return nil
			})
			return ctrl.Result{}, err
		},
		// Services are not watched.
		"missing-watch": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
			_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
				child.Spec.Selector = map[string]string{"app": object.Name}
				child.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: "TCP"}}
				return controllerutil.SetControllerReference(object, child, r.Scheme())
			})
			return ctrl.Result{}, err
		},
		// An owner that is no controller: `Owns` does not hear of the child.
		"missing-watch-owner": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
			_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
				child.Data = map[string]string{"a": "b"}
				return controllerutil.SetOwnerReference(object, child, r.Scheme())
			})
			return ctrl.Result{}, err
		},
		// The predicate lets only changes of the spec through; the label is an input.
		"event-dropped": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"tier": object.Labels["tier"]}, true)
		},
		"cross-namespace-owner": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: "kube-public"}}
			child.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "findings.example.com/v1", Kind: "Case", Name: object.Name, UID: object.UID,
			}}
			return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, child))
		},
		// An object of somebody else is taken over.
		"foreign-object": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, "settings", map[string]string{"owner": "operator"}, true)
		},
		// The custom resource names the object that is to be adopted.
		"healthy-adopt": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Spec.Child, map[string]string{"owner": "operator"}, true)
		},
		"name-collision": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, "collision", map[string]string{"of": object.Name}, false)
		},
		// The old child stays when spec.child changes.
		"left-behind": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Name+"-"+object.Spec.Child, map[string]string{"a": "b"}, true)
		},
		// The child is made with spec.child, and never compared with it.
		"change-not-applied": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.madeOnce(ctx, object)
		},
		// The same in two steps: the second reconcile takes the change over.
		"healthy-applied": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.ConfigMap{}
			err := r.Get(ctx, client.ObjectKeyFromObject(object), child)
			if err != nil || child.Data["child"] == object.Spec.Child {
				return ctrl.Result{}, r.madeOnce(ctx, object)
			}
			if child.Annotations["seen"] != object.Spec.Child {
				return ctrl.Result{RequeueAfter: 2 * time.Second}, r.note(ctx, child, object.Spec.Child)
			}
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"child": object.Spec.Child}, true)
		},
		// spec.env has changed, too, and no child has its values.
		"healthy-unused": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"a": "b"}, true)
		},
		// The old one goes.
		"healthy-renamed": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			wanted := object.Name + "-" + object.Spec.Child
			if err := r.configMap(ctx, object, wanted, map[string]string{"a": "b"}, true); err != nil {
				return ctrl.Result{}, err
			}
			children := &corev1.ConfigMapList{}
			if err := r.List(ctx, children, client.InNamespace(object.Namespace)); err != nil {
				return ctrl.Result{}, err
			}
			for i := range children.Items {
				child := &children.Items[i]
				if metav1.IsControlledBy(child, object) && child.Name != wanted {
					if err := r.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
						return ctrl.Result{}, err
					}
				}
			}
			return ctrl.Result{}, nil
		},
	})
}

// madeOnce makes a child with what the spec says, and leaves one that is there alone.
func (r *Reconciler) madeOnce(ctx context.Context, object *v1.Case) error {
	return r.once(ctx, object, object.Name, map[string]string{"child": object.Spec.Child})
}

// note writes down on a child what it has seen.
func (r *Reconciler) note(ctx context.Context, child *corev1.ConfigMap, seen string) error {
	before := child.DeepCopy()
	metav1.SetMetaDataAnnotation(&child.ObjectMeta, "seen", seen)
	return r.Patch(ctx, child, client.MergeFrom(before))
}
