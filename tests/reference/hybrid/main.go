// An operator of the helm-operator-plugins library, as the hybrid scaffold of the Operator SDK wrote it: one reconciler
// for each entry of watches.yaml. The options that the scaffold leaves to Go code come from the same opdev.yaml that opdev
// reads; what opdev takes from scripts is in scripts.go. For comparison only.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/operator-framework/helm-operator-plugins/pkg/annotation"
	helmclient "github.com/operator-framework/helm-operator-plugins/pkg/client"
	"github.com/operator-framework/helm-operator-plugins/pkg/reconciler"
	"github.com/operator-framework/helm-operator-plugins/pkg/storage"
	"github.com/operator-framework/helm-operator-plugins/pkg/watches"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/storage/driver"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

type helm struct {
	Wait                     bool   `json:"wait"`
	Timeout                  string `json:"timeout"`
	DisableHooks             bool   `json:"disableHooks"`
	SkipCRDs                 bool   `json:"skipCRDs"`
	DisableOpenAPIValidation bool   `json:"disableOpenAPIValidation"`
	Description              string `json:"description"`
}

// What opdev.yaml says of one kind.
type options struct {
	MaxReleaseHistory      *int   `json:"maxReleaseHistory"`
	WaitForDeletionTimeout string `json:"waitForDeletionTimeout"`
	ReconcilePeriod        string `json:"reconcilePeriod"`
	Annotations            *struct {
		Install, Upgrade, Uninstall []json.RawMessage
	} `json:"annotations"`
	PauseAnnotation       string `json:"pauseAnnotation"`
	FailureRollbacks      *bool  `json:"failureRollbacks"`
	RollbackForce         *bool  `json:"rollbackForce"`
	ReleaseNamespace      string `json:"releaseNamespace"`
	StorageNamespace      string `json:"storageNamespace"`
	Storage               string `json:"storage"`
	StorageOwnerReference *bool  `json:"storageOwnerReference"`
	ChunkedSecrets        struct {
		Owner                                    string
		ChunkSize, MaxReadChunks, MaxWriteChunks int
	} `json:"chunkedSecrets"`
	Helm struct {
		Install, Upgrade, Uninstall, Rollback helm
	} `json:"helm"`
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	return must(time.ParseDuration(text))
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := apiruntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	found := must(watches.Load("watches.yaml"))
	var settings struct {
		Charts map[string]json.RawMessage `json:"charts"`
	}
	if text, err := os.ReadFile("opdev.yaml"); err == nil {
		if err := yaml.Unmarshal(text, &settings); err != nil {
			panic(err)
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	mgr := must(ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metrics.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: namespaces()},
	}))
	for _, watch := range found {
		var own options
		if raw, ok := settings.Charts[watch.Kind+"."+watch.Group]; ok {
			if err := json.Unmarshal(raw, &own); err != nil {
				panic(err)
			}
		}
		made := must(reconciler.New(append(base(mgr, watch, own), scripts(mgr, watch.Kind)...)...))
		if err := made.SetupWithManager(mgr); err != nil {
			panic(err)
		}
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

// The namespaces of WATCH_NAMESPACE; none means all.
func namespaces() map[string]cache.Config {
	names := os.Getenv("WATCH_NAMESPACE")
	if names == "" {
		return nil
	}
	found := map[string]cache.Config{}
	for _, name := range strings.Split(names, ",") {
		found[name] = cache.Config{}
	}
	return found
}

func base(mgr ctrl.Manager, watch watches.Watch, own options) []reconciler.Option {
	period, workers := time.Minute, runtime.NumCPU()
	if watch.ReconcilePeriod != nil {
		period = watch.ReconcilePeriod.Duration
	}
	if watch.MaxConcurrentReconciles != nil {
		workers = *watch.MaxConcurrentReconciles
	}
	all := []reconciler.Option{
		reconciler.WithChart(*watch.Chart),
		reconciler.WithGroupVersionKind(watch.GroupVersionKind),
		reconciler.WithOverrideValues(watch.OverrideValues),
		reconciler.WithSelector(*watch.Selector),
		reconciler.SkipDependentWatches(watch.WatchDependentResources != nil && !*watch.WatchDependentResources),
		reconciler.WithMaxConcurrentReconciles(workers),
		reconciler.WithReconcilePeriod(period),
		reconciler.WithActionClientGetter(actions(mgr, watch, own)),
	}
	if own.MaxReleaseHistory != nil {
		all = append(all, reconciler.WithMaxReleaseHistory(*own.MaxReleaseHistory))
	}
	if own.WaitForDeletionTimeout != "" {
		all = append(all, reconciler.WithWaitForDeletionTimeout(duration(own.WaitForDeletionTimeout)))
	}
	if own.PauseAnnotation != "" {
		handler := reconciler.PauseReconcileIfAnnotationTrue(own.PauseAnnotation)
		all = append(all, reconciler.WithPauseReconcileHandler(handler))
	}
	if own.Annotations == nil {
		return append(all,
			reconciler.WithInstallAnnotations(annotation.DefaultInstallAnnotations...),
			reconciler.WithUpgradeAnnotations(annotation.DefaultUpgradeAnnotations...),
			reconciler.WithUninstallAnnotations(annotation.DefaultUninstallAnnotations...))
	}
	for _, raw := range own.Annotations.Install {
		switch option, name := named(raw); option {
		case "disable-hooks":
			all = append(all, reconciler.WithInstallAnnotations(annotation.InstallDisableHooks{CustomName: name}))
		case "description":
			all = append(all, reconciler.WithInstallAnnotations(annotation.InstallDescription{CustomName: name}))
		}
	}
	for _, raw := range own.Annotations.Upgrade {
		switch option, name := named(raw); option {
		case "disable-hooks":
			all = append(all, reconciler.WithUpgradeAnnotations(annotation.UpgradeDisableHooks{CustomName: name}))
		case "force":
			all = append(all, reconciler.WithUpgradeAnnotations(annotation.UpgradeForce{CustomName: name}))
		case "description":
			all = append(all, reconciler.WithUpgradeAnnotations(annotation.UpgradeDescription{CustomName: name}))
		}
	}
	for _, raw := range own.Annotations.Uninstall {
		switch option, name := named(raw); option {
		case "disable-hooks":
			all = append(all, reconciler.WithUninstallAnnotations(annotation.UninstallDisableHooks{CustomName: name}))
		case "description":
			all = append(all, reconciler.WithUninstallAnnotations(annotation.UninstallDescription{CustomName: name}))
		}
	}
	return all
}

// An annotation: what it chooses, and its own name.
func named(raw json.RawMessage) (string, string) {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return word, ""
	}
	var both map[string]string
	if err := json.Unmarshal(raw, &both); err != nil {
		panic(err)
	}
	for option, name := range both {
		return option, name
	}
	return "", ""
}

func actions(mgr ctrl.Manager, watch watches.Watch, own options) helmclient.ActionClientGetter {
	var config []helmclient.ActionConfigGetterOption
	if own.ReleaseNamespace != "" {
		config = append(config, helmclient.ClientNamespaceMapper(always(own.ReleaseNamespace)))
	}
	switch own.Storage {
	case "configmap":
		config = append(config, helmclient.StorageDriverMapper(
			func(_ context.Context, object client.Object, rest *rest.Config) (driver.Driver, error) {
				core, err := corev1.NewForConfig(rest)
				if err != nil {
					return nil, err
				}
				made := driver.NewConfigMaps(core.ConfigMaps(object.GetNamespace()))
				made.Log = func(string, ...interface{}) {}
				return made, nil
			}))
	case "chunked":
		config = append(config, helmclient.StorageDriverMapper(
			func(_ context.Context, object client.Object, rest *rest.Config) (driver.Driver, error) {
				clients, err := corev1.NewForConfig(rest)
				if err != nil {
					return nil, err
				}
				// The custom resource owns the index, and the index the rest, as in OLM's operator-controller.
				owners := []metav1.OwnerReference{*metav1.NewControllerRef(object, watch.GroupVersionKind)}
				isIndex := func(secret *core.Secret) bool { return secret.Type == storage.SecretTypeChunkedIndex }
				secrets := helmclient.NewOwnerRefSecretClient(clients.Secrets(object.GetNamespace()), owners, isIndex)
				how := own.ChunkedSecrets
				return storage.NewChunkedSecrets(secrets, how.Owner, storage.ChunkedSecretsConfig{
					ChunkSize: how.ChunkSize, MaxReadChunks: how.MaxReadChunks, MaxWriteChunks: how.MaxWriteChunks,
				}), nil
			}))
	case "memory":
		kept := driver.NewMemory()
		config = append(config, helmclient.StorageDriverMapper(
			func(_ context.Context, object client.Object, _ *rest.Config) (driver.Driver, error) {
				kept.SetNamespace(object.GetNamespace())
				return kept, nil
			}))
	default:
		var records helmclient.SecretsStorageDriverOpts
		records.DisableOwnerRefInjection = own.StorageOwnerReference != nil && !*own.StorageOwnerReference
		if own.StorageNamespace != "" {
			records.StorageNamespaceMapper = always(own.StorageNamespace)
		}
		config = append(config, helmclient.StorageDriverMapper(helmclient.DefaultSecretsStorageDriver(records)))
	}
	getter := must(helmclient.NewActionConfigGetter(mgr.GetConfig(), mgr.GetRESTMapper(), config...))
	install, upgrade, uninstall, rollback := own.Helm.Install, own.Helm.Upgrade, own.Helm.Uninstall, own.Helm.Rollback
	all := []helmclient.ActionClientGetterOption{
		helmclient.AppendInstallOptions(func(it *action.Install) error {
			it.Wait, it.Timeout, it.DisableHooks = install.Wait, duration(install.Timeout), install.DisableHooks
			it.SkipCRDs, it.DisableOpenAPIValidation = install.SkipCRDs, install.DisableOpenAPIValidation
			it.Description = install.Description
			return nil
		}),
		helmclient.AppendUpgradeOptions(func(it *action.Upgrade) error {
			it.Wait, it.Timeout, it.DisableHooks = upgrade.Wait, duration(upgrade.Timeout), upgrade.DisableHooks
			it.DisableOpenAPIValidation, it.Description = upgrade.DisableOpenAPIValidation, upgrade.Description
			return nil
		}),
		helmclient.AppendUninstallOptions(func(it *action.Uninstall) error {
			it.Wait, it.Timeout, it.DisableHooks = uninstall.Wait, duration(uninstall.Timeout), uninstall.DisableHooks
			it.Description = uninstall.Description
			return nil
		}),
		helmclient.AppendUpgradeFailureRollbackOptions(func(it *action.Rollback) error {
			it.Wait, it.Timeout, it.DisableHooks = rollback.Wait, duration(rollback.Timeout), rollback.DisableHooks
			if own.RollbackForce != nil {
				it.Force = *own.RollbackForce
			}
			return nil
		}),
	}
	if own.FailureRollbacks != nil {
		all = append(all, helmclient.WithFailureRollbacks(*own.FailureRollbacks))
	}
	all = append(all, postRenderers(watch.Kind)...)
	return must(helmclient.NewActionClientGetter(getter, all...))
}

func always(text string) helmclient.ObjectToStringMapper {
	return func(client.Object) (string, error) { return text, nil }
}
