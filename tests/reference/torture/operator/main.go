// Command torture is an operator with one fault for each disturbance, and with its twin, which is right. `SHOWS` chooses;
// README.md has the table.
package main

import (
	"net/http"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "example.com/torture/api/v1"
	"example.com/torture/controllers"
)

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme)
	_ = v1.AddToScheme(scheme)
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme})
	if err != nil {
		panic(err)
	}
	// Several of these run beside one another: each finds a certificate and a port of its own.
	manager.GetWebhookServer().Register("/validate", http.NotFoundHandler())
	reconciler, err := controllers.New(manager.GetClient(), os.Getenv("SHOWS"))
	if err != nil {
		panic(err)
	}
	err = ctrl.NewControllerManagedBy(manager).For(&v1.Store{}, reconciler.Watches()...).Owns(&corev1.ConfigMap{}).Complete(reconciler)
	if err != nil {
		panic(err)
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		ctrl.Log.Error(err, "the manager has ended")
		os.Exit(1)
	}
}
