// Command fleet is an operator that makes attribution hard: four workers, writes from child goroutines with a context
// of their own, a client beside the manager, errors, requeues. Each write says in itself which pass made it, so that a
// test knows the truth. It compiles with controller-runtime 0.16 to 0.25.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// Fleet asks for so many config maps.
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FleetSpec   `json:"spec,omitempty"`
	Status            FleetStatus `json:"status,omitempty"`
}

// FleetSpec is what is wanted.
type FleetSpec struct {
	Replicas int `json:"replicas"`
	// Fails says how often the first passes fail.
	Fails int `json:"fails,omitempty"`
}

// FleetStatus is what is there.
type FleetStatus struct {
	Replicas int    `json:"replicas"`
	Pass     string `json:"pass,omitempty"`
}

// FleetList is a list.
type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Fleet `json:"items"`
}

// DeepCopyObject copies.
func (in *Fleet) DeepCopyObject() runtime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject copies.
func (in *FleetList) DeepCopyObject() runtime.Object {
	out := *in
	out.Items = make([]Fleet, len(in.Items))
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*Fleet)
	}
	return &out
}

type reconciler struct {
	client.Client
	beside kubernetes.Interface
	events record.EventRecorder
	lock   sync.Mutex
	failed map[string]int
}

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	pass := string(controller.ReconcileIDFromContext(ctx))
	var fleet Fleet
	if err := r.Get(ctx, req.NamespacedName, &fleet); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.lock.Lock()
	r.failed[fleet.Name]++
	fails := r.failed[fleet.Name] <= fleet.Spec.Fails
	r.lock.Unlock()
	if fails {
		return ctrl.Result{}, fmt.Errorf("fleet %s is not ready to sail", fleet.Name)
	}
	var ships corev1.ConfigMapList
	if err := r.List(ctx, &ships, client.InNamespace(req.Namespace), client.MatchingLabels{"fleet": fleet.Name}); err != nil {
		return ctrl.Result{}, err
	}
	there := map[string]bool{}
	for _, ship := range ships.Items {
		there[ship.Name] = true
	}
	var crew sync.WaitGroup
	errs := make(chan error, fleet.Spec.Replicas)
	for i := 0; i < fleet.Spec.Replicas; i++ {
		name := fleet.Name + "-" + strconv.Itoa(i)
		if there[name] {
			continue
		}
		crew.Add(1)
		go func() {
			defer crew.Done()
			ship := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: req.Namespace, Name: name, Labels: map[string]string{"fleet": fleet.Name},
				Annotations: map[string]string{"pass": pass},
			}}
			ship.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&fleet, kind)}
			if err := r.Create(context.TODO(), ship); err != nil {
				errs <- client.IgnoreAlreadyExists(err)
			}
		}()
	}
	crew.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	if _, err := r.beside.CoreV1().ConfigMaps(req.Namespace).Get(ctx, fleet.Name+"-0", metav1.GetOptions{}); err != nil && client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	log.FromContext(ctx).Info("sailing", "ships", len(there), "wanted", fleet.Spec.Replicas)
	// Says which pass it is of. The goroutine that sends it was started by the first pass of all.
	r.events.Eventf(&fleet, corev1.EventTypeNormal, "Sailing", "in pass %s", pass)
	if fleet.Status.Replicas != len(there) {
		fleet.Status = FleetStatus{Replicas: len(there), Pass: pass}
		if err := r.Status().Update(ctx, &fleet); err != nil {
			return ctrl.Result{}, err
		}
	}
	if len(there) < fleet.Spec.Replicas {
		return ctrl.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return ctrl.Result{}, nil
}

var kind = schema.GroupVersionKind{Group: "test.opdev.dev", Version: "v1", Kind: "Fleet"}

func main() {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	scheme.AddKnownTypes(kind.GroupVersion(), &Fleet{}, &FleetList{})
	metav1.AddToGroupVersion(scheme, kind.GroupVersion())
	// A client that no variable of controller-runtime leads to.
	beside := kubernetes.NewForConfigOrDie(config.GetConfigOrDie())
	m, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme: scheme, LeaderElection: true, LeaderElectionID: "fleet.test.opdev.dev", HealthProbeBindAddress: ":8081",
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "no manager:", err)
		os.Exit(1)
	}
	err = ctrl.NewControllerManagedBy(m).For(&Fleet{}).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(&reconciler{Client: m.GetClient(), beside: beside, events: m.GetEventRecorderFor("fleet"), failed: map[string]int{}})
	if err != nil {
		fmt.Fprintln(os.Stderr, "no controller:", err)
		os.Exit(1)
	}
	if err := m.Start(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "the manager ended:", err)
		os.Exit(1)
	}
}
