package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/go-logr/logr"
	helmclient "github.com/operator-framework/helm-operator-plugins/pkg/client"
	"github.com/operator-framework/helm-operator-plugins/pkg/hook"
	"github.com/operator-framework/helm-operator-plugins/pkg/reconciler"
	"github.com/operator-framework/helm-operator-plugins/pkg/values"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/postrender"
	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The Go code of one kind, for what opdev takes from its script: the kind's name says which of these functions it has.
func scripts(mgr ctrl.Manager, kind string) []reconciler.Option {
	var all []reconciler.Option
	has := func(name string) bool { return bytes.Contains([]byte(kind), []byte(name)) }
	if has("Translated") {
		all = append(all, reconciler.WithValueTranslator(values.TranslatorFunc(
			func(_ context.Context, object *unstructured.Unstructured) (chartutil.Values, error) {
				size, _, err := unstructured.NestedInt64(object.Object, "spec", "size")
				if err != nil {
					return nil, err
				}
				if size < 0 {
					return nil, fmt.Errorf("size must not be negative")
				}
				return chartutil.Values{"greeting": fmt.Sprintf("size %d", size)}, nil
			})))
	}
	if has("Asked") {
		all = append(all, reconciler.WithPauseReconcileHandler(
			func(_ context.Context, object *unstructured.Unstructured) (bool, error) {
				paused, _, err := unstructured.NestedBool(object.Object, "spec", "paused")
				return paused, err
			}))
	}
	if has("Before") {
		all = append(all, reconciler.WithPreHook(hook.PreHookFunc(
			func(object *unstructured.Unstructured, vals chartutil.Values, _ logr.Logger) error {
				return put(mgr.GetClient(), object, "before", fmt.Sprint(vals["greeting"]))
			})))
	}
	if has("After") {
		all = append(all, reconciler.WithPostHook(hook.PostHookFunc(
			func(object *unstructured.Unstructured, rel release.Release, _ logr.Logger) error {
				return put(mgr.GetClient(), object, "after", fmt.Sprintf("revision %d", rel.Version))
			})))
	}
	if has("Throwing") {
		all = append(all, reconciler.WithPreHook(hook.PreHookFunc(
			func(*unstructured.Unstructured, chartutil.Values, logr.Logger) error {
				return fmt.Errorf("no luck today")
			})))
	}
	return all
}

// A ConfigMap beside the release.
func put(to client.Client, owner *unstructured.Unstructured, what, text string) error {
	wanted := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: owner.GetName() + "-" + what, Namespace: owner.GetNamespace()},
		Data:       map[string]string{"text": text},
	}
	err := to.Create(context.TODO(), wanted)
	if apierrors.IsAlreadyExists(err) {
		return to.Update(context.TODO(), wanted)
	}
	return err
}

func postRenderers(kind string) []helmclient.ActionClientGetterOption {
	if !bytes.Contains([]byte(kind), []byte("Rendered")) {
		return nil
	}
	return []helmclient.ActionClientGetterOption{helmclient.AppendPostRenderers(
		func(meta.RESTMapper, kube.Interface, client.Object) postrender.PostRenderer { return replacing{} },
	)}
}

// Says "goodbye" wherever the chart says "hello".
type replacing struct{}

func (replacing) Run(in *bytes.Buffer) (*bytes.Buffer, error) {
	return bytes.NewBuffer(bytes.ReplaceAll(in.Bytes(), []byte("hello"), []byte("goodbye"))), nil
}
