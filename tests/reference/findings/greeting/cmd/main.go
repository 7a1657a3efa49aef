// Command greeting is a healthy operator; ../screen.py plants bugs in it.
package main

import (
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "example.com/greeting/api/v1"
	"example.com/greeting/internal/controller"
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
	reconciler := &controller.GreetingReconciler{Client: manager.GetClient(), Scheme: manager.GetScheme()}
	if err := reconciler.SetupWithManager(manager); err != nil {
		panic(err)
	}
	if manager.Start(ctrl.SetupSignalHandler()) != nil {
		os.Exit(1)
	}
}
