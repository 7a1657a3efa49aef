package controllers

import (
	"context"
	"fmt"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1 "example.com/findings/api/v1"
)

func now() *metav1.MicroTime {
	time := metav1.NowMicro()
	return &time
}

func (r *Reconciler) environment(ctx context.Context, object *v1.Case, sorted bool) error {
	var list []corev1.EnvVar
	for name, value := range object.Spec.Env {
		list = append(list, corev1.EnvVar{Name: name, Value: value})
	}
	if sorted {
		sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	}
	_, err := r.deployment(ctx, object, func(child *appsv1.Deployment) {
		child.Spec.Template.Spec.Containers[0].Env = list
	})
	return err
}

func init() {
	add(map[string]step{
		"status-each-time": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			object.Status.LastCheck = now()
			time.Sleep(20 * time.Millisecond)
			return ctrl.Result{}, r.Status().Update(ctx, object)
		},
		// A heartbeat when it is due.
		"healthy-heartbeat": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			const period = 3 * time.Second
			if last := object.Status.LastCheck; last != nil && time.Since(last.Time) < period {
				return ctrl.Result{RequeueAfter: period - time.Since(last.Time)}, nil
			}
			object.Status.LastCheck = now()
			return ctrl.Result{RequeueAfter: period}, r.Status().Update(ctx, object)
		},
		// A rollout in six steps.
		"healthy-steps": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			if object.Status.Count >= 6 {
				return ctrl.Result{}, nil
			}
			object.Status.Count++
			return ctrl.Result{RequeueAfter: time.Second}, r.Status().Update(ctx, object)
		},
		"unstable-output": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.environment(ctx, object, false)
		},
		"healthy-order": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{}, r.environment(ctx, object, true)
		},
		// Its own annotation goes to and fro.
		"hot-loop": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			time.Sleep(20 * time.Millisecond)
			if object.Annotations == nil {
				object.Annotations = map[string]string{}
			}
			turn := map[string]string{"": "a", "a": "b", "b": "a"}
			object.Annotations["findings.example.com/turn"] = turn[object.Annotations["findings.example.com/turn"]]
			return ctrl.Result{}, r.Update(ctx, object)
		},
		// Appends a condition each time: the list grows.
		"hot-loop-growing": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			time.Sleep(50 * time.Millisecond)
			if len(object.Status.Conditions) > 300 {
				return ctrl.Result{}, nil
			}
			object.Status.Conditions = append(object.Status.Conditions, metav1.Condition{
				Type: "Checked", Status: "True", Reason: "Again", LastTransitionTime: metav1.Now(),
				Message: fmt.Sprint(len(object.Status.Conditions)),
			})
			return ctrl.Result{}, r.Status().Update(ctx, object)
		},
		"requeue-storm": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
		},
		// Polls until its Deployment is there for six seconds.
		"healthy-poll": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child, err := r.deployment(ctx, object, nil)
			if err != nil {
				return ctrl.Result{}, client.IgnoreAlreadyExists(err)
			}
			if child.Status.ReadyReplicas < 1 || time.Since(object.CreationTimestamp.Time) < 6*time.Second {
				return ctrl.Result{RequeueAfter: 200 * time.Millisecond}, nil
			}
			return ctrl.Result{}, nil
		},
		// Two controllers that do not agree.
		"fight": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			time.Sleep(20 * time.Millisecond)
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, map[string]string{"mode": r.name}, true)
		},
		"object-growth": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				GenerateName: object.Name + "-", Namespace: object.Namespace,
			}}
			if err := controllerutil.SetControllerReference(object, child, r.Scheme()); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{RequeueAfter: 500 * time.Millisecond}, r.Create(ctx, child)
		},
		"event-flood": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			r.recorder.Eventf(object, "Normal", "Synced", "synced at %s", time.Now().Format(time.RFC3339Nano))
			return ctrl.Result{RequeueAfter: 500 * time.Millisecond}, nil
		},
		// The same words again and again: client-go counts them on one Event.
		"healthy-events": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			r.recorder.Event(object, "Normal", "Synced", "synced")
			return ctrl.Result{RequeueAfter: 2 * time.Second}, nil
		},
		"write-without-change": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: time.Second}, r.Update(ctx, object)
		},
		// Another value in each reconcile, and nobody who wakes it: only one more reconcile shows it.
		"still-writes": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			data := map[string]string{"at": time.Now().Format(time.RFC3339Nano)}
			return ctrl.Result{}, r.configMap(ctx, object, object.Name, data, false)
		},
		"panic": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			var labels map[string]string
			labels["app"] = "a"
			return ctrl.Result{}, nil
		},
		// A list without copies: its maps are those of the cache.
		"cache-mutated": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: time.Minute}, r.mark(ctx, object, client.UnsafeDisableDeepCopy)
		},
		"healthy-copy": func(r *Reconciler, ctx context.Context, object *v1.Case) (ctrl.Result, error) {
			return ctrl.Result{RequeueAfter: time.Minute}, r.mark(ctx, object)
		},
		// A goroutine that nobody ends, in each reconcile.
		"process-growth": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			go func() { select {} }()
			return ctrl.Result{RequeueAfter: 5 * time.Second}, nil
		},
		// Goroutines that live for some reconciles.
		"healthy-goroutines": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			go time.Sleep(40 * time.Second)
			return ctrl.Result{RequeueAfter: 5 * time.Second}, nil
		},
		"slow": func(*Reconciler, context.Context, *v1.Case) (ctrl.Result, error) {
			time.Sleep(12 * time.Second)
			return ctrl.Result{RequeueAfter: time.Minute}, nil
		},
	})
}

// mark notes in each ConfigMap that it was seen, and stores nothing.
func (r *Reconciler) mark(ctx context.Context, object *v1.Case, options ...client.ListOption) error {
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
	child.Data = map[string]string{"mode": "on"}
	if err := controllerutil.SetControllerReference(object, child, r.Scheme()); err != nil {
		return err
	}
	if err := r.Create(ctx, child); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	children := &corev1.ConfigMapList{}
	if err := r.List(ctx, children, append(options, client.InNamespace(object.Namespace))...); err != nil {
		return err
	}
	for i := range children.Items {
		if children.Items[i].Data != nil {
			children.Items[i].Data["seen"] = "yes"
		}
	}
	return nil
}
