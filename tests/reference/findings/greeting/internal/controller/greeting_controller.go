// Package controller reconciles Greetings: a ConfigMap with the text, a Service and a Deployment that reads it.
package controller

import (
	"context"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	v1 "example.com/greeting/api/v1"
)

const (
	finalizer = "demo.example.com/cleanup"
	// owner says on a cluster-wide object whose it is.
	owner = "demo.example.com/greeting"
)

// GreetingReconciler reconciles a Greeting.
type GreetingReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	seen   map[types.NamespacedName]int
}

// Reconcile brings the children of a Greeting to what its spec asks for.
func (r *GreetingReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	greeting := &v1.Greeting{}
	if err := r.Get(ctx, req.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !greeting.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, greeting)
	}
	if controllerutil.AddFinalizer(greeting, finalizer) {
		if err := r.Update(ctx, greeting); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.role(ctx, greeting); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.configMap(ctx, greeting); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.service(ctx, greeting); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.deployment(ctx, greeting); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.status(ctx, greeting)
}

func (r *GreetingReconciler) finalize(ctx context.Context, greeting *v1.Greeting) error {
	if !controllerutil.ContainsFinalizer(greeting, finalizer) {
		return nil
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "greeting-" + greeting.Name}}
	if err := r.Delete(ctx, role); client.IgnoreNotFound(err) != nil {
		return err
	}
	controllerutil.RemoveFinalizer(greeting, finalizer)
	return r.Update(ctx, greeting)
}

// role lets the pods read the text. A cluster-wide object cannot have this owner: the finalizer deletes it.
func (r *GreetingReconciler) role(ctx context.Context, greeting *v1.Greeting) error {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "greeting-" + greeting.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, role, func() error {
		role.Annotations = map[string]string{owner: greeting.Namespace + "/" + greeting.Name}
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}
		return nil
	})
	return err
}

func (r *GreetingReconciler) configMap(ctx context.Context, greeting *v1.Greeting) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: greeting.Name + "-text", Namespace: greeting.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(greeting, child, r.Scheme)
	})
	return err
}

func (r *GreetingReconciler) service(ctx context.Context, greeting *v1.Greeting) error {
	child := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: greeting.Name, Namespace: greeting.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Spec.Selector = map[string]string{"app": greeting.Name}
		child.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: "TCP"}}
		return controllerutil.SetControllerReference(greeting, child, r.Scheme)
	})
	return err
}

func (r *GreetingReconciler) deployment(ctx context.Context, greeting *v1.Greeting) error {
	var env []corev1.EnvVar
	for name, value := range greeting.Spec.Env {
		env = append(env, corev1.EnvVar{Name: name, Value: value})
	}
	sort.Slice(env, func(i, j int) bool { return env[i].Name < env[j].Name })
	child := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: greeting.Name, Namespace: greeting.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		labels := map[string]string{"app": greeting.Name}
		child.Spec.Replicas = &greeting.Spec.Replicas
		child.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		child.Spec.Template.Labels = labels
		if len(child.Spec.Template.Spec.Containers) != 1 {
			child.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main"}}
		}
		child.Spec.Template.Spec.Containers[0].Image = "nginx:1"
		child.Spec.Template.Spec.Containers[0].Env = env
		return controllerutil.SetControllerReference(greeting, child, r.Scheme)
	})
	return err
}

func (r *GreetingReconciler) status(ctx context.Context, greeting *v1.Greeting) error {
	deployment := &appsv1.Deployment{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(greeting), deployment); client.IgnoreNotFound(err) != nil {
		return err
	}
	before := greeting.DeepCopy()
	ready := metav1.ConditionFalse
	if deployment.Status.ReadyReplicas == greeting.Spec.Replicas {
		ready = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&greeting.Status.Conditions, metav1.Condition{Type: "Ready", Status: ready, Reason: "Deployment"})
	greeting.Status.ObservedGeneration = greeting.Generation
	if equality.Semantic.DeepEqual(before.Status, greeting.Status) {
		return nil
	}
	return r.Status().Patch(ctx, greeting, client.MergeFrom(before))
}

// SetupWithManager says what is watched.
func (r *GreetingReconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		For(&v1.Greeting{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Service{}).
		Watches(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, role client.Object) []ctrl.Request {
			namespace, name, found := strings.Cut(role.GetAnnotations()[owner], "/")
			if !found {
				return nil
			}
			return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
		})).
		Complete(r)
}
