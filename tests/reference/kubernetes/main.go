// The real Kubernetes API server, controller manager and etcd in one binary, for comparisons with the embedded
// control plane. `up` starts all of them as children of itself, writes a kubeconfig and stays until it is stopped.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: reference up [flags] | etcd DIR CLIENT PEER | kube-apiserver … | kube-controller-manager … | pods KUBECONFIG | compare [flags] | cases [flags]")
		os.Exit(2)
	}
	role := os.Args[1]
	os.Args = append([]string{role}, os.Args[2:]...)
	switch role {
	case "up":
		exit(up())
	case "etcd":
		exit(etcd())
	case "pods":
		exit(pods())
	case "cases":
		exit(cases())
	case "compare":
		exit(compare())
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	default:
		exit(fmt.Errorf("no such role: %s", role))
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
