// The webhooks of the end-to-end specs as processes of this machine, where their pods are simulated: agnhost's own, on the
// ports of the specs, with the certificate that each spec puts into its Secret.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook/converter"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

// commands are what a spec's Deployment runs, by the Secret that it mounts.
var commands = map[string][]string{
	"sample-webhook-secret":                            {"webhook", "--port=8444"},
	"sample-custom-resource-conversion-webhook-secret": {"crd-conversion-webhook", "--port=9444"},
}

func main() {
	root := &cobra.Command{Use: "webhooks", SilenceUsage: true}
	kubeconfig := root.PersistentFlags().String("kubeconfig", "", "of the API server that the specs run against")
	root.RunE = func(command *cobra.Command, _ []string) error { return follow(command.Context(), *kubeconfig) }
	root.PersistentFlags().AddGoFlagSet(flag.CommandLine)
	root.AddCommand(webhook.CmdWebhook, conversion())
	if root.ExecuteContext(context.Background()) != nil {
		os.Exit(1)
	}
}

// conversion serves agnhost's conversions. Its own command asks for the pod's account, and does nothing with it.
func conversion() *cobra.Command {
	command := &cobra.Command{Use: "crd-conversion-webhook"}
	cert := command.Flags().String("tls-cert-file", "", "")
	key := command.Flags().String("tls-private-key-file", "", "")
	port := command.Flags().Int("port", 443, "")
	command.RunE = func(*cobra.Command, []string) error {
		http.HandleFunc("/crdconvert", converter.ServeExampleConvert)
		return http.ListenAndServeTLS(fmt.Sprintf("127.0.0.1:%d", *port), *cert, *key, nil)
	}
	return command
}

// follow starts a webhook anew with each Secret that is made for it.
func follow(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "webhooks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	secrets, err := client.CoreV1().Secrets("").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	running := map[string]*exec.Cmd{}
	for event := range secrets.ResultChan() {
		secret, ok := event.Object.(*v1.Secret)
		if !ok || event.Type != "ADDED" || commands[secret.Name] == nil {
			continue
		}
		if old := running[secret.Name]; old != nil {
			_ = old.Process.Kill()
			_ = old.Wait()
		}
		args := commands[secret.Name]
		for flag, key := range map[string]string{"--tls-cert-file": "tls.crt", "--tls-private-key-file": "tls.key"} {
			path := filepath.Join(folder, secret.Name+"-"+key)
			if err := os.WriteFile(path, secret.Data[key], 0o600); err != nil {
				return err
			}
			args = append(args[:len(args):len(args)], flag+"="+path)
		}
		child := exec.Command(os.Args[0], args...)
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			return err
		}
		running[secret.Name] = child
		fmt.Printf("%s for %s\n", args[0], secret.Namespace)
	}
	return nil
}
