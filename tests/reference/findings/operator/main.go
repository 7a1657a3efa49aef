// Command findings is an operator with one fault for each rule of opdev, and with healthy code that looks alike.
// `spec.shows` chooses; README.md has the table.
package main

import (
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	v1 "example.com/findings/api/v1"
	"example.com/findings/controllers"
)

// only lets through the cases of one controller.
func only(shows func(string) bool) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		shown, ok := object.(*v1.Case)
		return !ok || shows(shown.Spec.Shows)
	})
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = v1.AddToScheme(scheme)
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	if err != nil {
		panic(err)
	}
	reconciler := controllers.New(manager)
	generation := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	special := map[string]bool{
		"slow": true, "healthy-busy": true, "event-dropped": true, "healthy-cleaner": true, "second": true, "fight": true,
		"process-growth": true, "healthy-goroutines": true, "own-object-gone": true,
	}
	set := []struct {
		name     string
		build    *builder.Builder
		selected func(string) bool
	}{
		{"case", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}).Owns(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).
			Owns(&batchv1.Job{}).Owns(&corev1.Secret{}).WithOptions(controller.Options{MaxConcurrentReconciles: 4}),
			func(shows string) bool { return !special[shows] }},
		{"forgetful", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}), func(shows string) bool { return shows == "own-object-gone" }},
		{"slow", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}), func(shows string) bool { return shows == "slow" }},
		{"growing", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}), func(shows string) bool { return shows == "process-growth" }},
		{"passing", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}), func(shows string) bool { return shows == "healthy-goroutines" }},
		{"busy", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}).Owns(&corev1.ConfigMap{}),
			func(shows string) bool { return shows == "healthy-busy" }},
		{"dropping", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}, generation).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}),
			func(shows string) bool { return shows == "event-dropped" || shows == "healthy-cleaner" }},
		{"first", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}).Owns(&corev1.ConfigMap{}),
			func(shows string) bool { return shows == "fight" }},
		{"second", ctrl.NewControllerManagedBy(manager).For(&v1.Case{}).Owns(&corev1.ConfigMap{}),
			func(shows string) bool { return shows == "fight" }},
	}
	for _, one := range set {
		one.build.Named(one.name).WithEventFilter(only(one.selected))
		if err := one.build.Complete(reconciler.As(one.name, one.selected)); err != nil {
			panic(err)
		}
	}
	if manager.Start(ctrl.SetupSignalHandler()) != nil {
		os.Exit(1)
	}
}
