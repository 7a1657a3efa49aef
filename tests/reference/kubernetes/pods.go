package main

import (
	"context"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const node = "reference-node"

// pods KUBECONFIG: one node that takes every pod, starts it at once and lets it go at once.
func pods() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("pods needs a kubeconfig")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if err := makeNode(ctx, client); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	play := func(object any) {
		if pod, ok := object.(*v1.Pod); ok {
			if err := advance(ctx, client, pod); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	_, err = factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    play,
		UpdateFunc: func(_, now any) { play(now) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for range time.Tick(10 * time.Second) {
		renew(ctx, client)
	}
	return nil
}

func makeNode(ctx context.Context, client kubernetes.Interface) error {
	made, err := client.CoreV1().Nodes().Create(ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Spec.Taints = nil
	if made, err = client.CoreV1().Nodes().Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	made.Status.Conditions = []v1.NodeCondition{condition()}
	_, err = client.CoreV1().Nodes().UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}

func condition() v1.NodeCondition {
	now := metav1.Now()
	return v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
	}
}

// renew keeps the node's controller from calling it lost.
func renew(ctx context.Context, client kubernetes.Interface) {
	known, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err == nil {
		known.Status.Conditions = []v1.NodeCondition{condition()}
		_, err = client.CoreV1().Nodes().UpdateStatus(ctx, known, metav1.UpdateOptions{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// advance takes a pod one step on: bound, running, or let go.
func advance(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) error {
	api := client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		return ignoreGone(api.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	case pod.Spec.NodeName == "":
		bind := &v1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
			Target:     v1.ObjectReference{Kind: "Node", Name: node},
		}
		return ignoreGone(api.Bind(ctx, bind, metav1.CreateOptions{}))
	case pod.Status.Phase == v1.PodPending:
		return ignoreGone(start(ctx, client, pod.DeepCopy()))
	}
	return nil
}

func start(ctx context.Context, client kubernetes.Interface, pod *v1.Pod) error {
	now := metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = v1.PodRunning, &now
	for _, kind := range []v1.PodConditionType{v1.PodInitialized, v1.PodReady, v1.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			v1.PodCondition{Type: kind, Status: v1.ConditionTrue, LastTransitionTime: now})
	}
	for _, container := range pod.Spec.Containers {
		started := true
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: &started,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}},
		})
	}
	_, err := client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// ignoreGone swallows what the next event of the pod answers anyway.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
