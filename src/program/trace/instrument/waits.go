// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Reads that wait until the cache has what the program itself wrote. The wait lies in the client of controller-runtime, above
// the cache; it is there since 0.25, for managers whose options ask for it.

// How long a read waits before it is told of while it still waits.
const opdevTraceLongWait = 500 * time.Millisecond

type opdevTraceWaitKey struct{}

type opdevTraceWait struct {
	began time.Time
	// The read has come to the cache, or is over.
	over atomic.Bool
}

type opdevTraceWaiting struct {
	Record string           `json:"record"`
	T      int64            `json:"t"`
	ID     string           `json:"id"`
	Verb   string           `json:"verb"`
	Object opdevTraceObject `json:"object"`
}

func init() {
	if !opdevTraceOn {
		return
	}
	opdevTraceWrapClient = func(o *manager.Options) {
		newClient := o.NewClient
		if newClient == nil {
			newClient = client.New
		}
		o.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
			inner, err := newClient(config, options)
			of := options.Cache
			waits := of != nil && of.EnableReadYourWritesConsistency != nil && *of.EnableReadYourWritesConsistency
			if err != nil || inner == nil || !waits {
				return inner, err
			}
			return opdevTraceClient{inner}, nil
		}
	}
	opdevTraceWaited = func(ctx context.Context) int64 {
		wait, ok := ctx.Value(opdevTraceWaitKey{}).(*opdevTraceWait)
		if !ok || wait.over.Swap(true) {
			return 0
		}
		return int64(time.Since(wait.began))
	}
}

type opdevTraceClient struct{ client.Client }

func (c opdevTraceClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	id, _ := opdevTraceWho(ctx)
	if id == "" {
		return c.Client.Get(ctx, key, o, options...)
	}
	waiting := opdevTraceWaiting{Record: "waiting", ID: id, Verb: "get"}
	waiting.Object.setKind(o)
	waiting.Object.Namespace, waiting.Object.Name = key.Namespace, key.Name
	ctx, over := waiting.await(ctx)
	defer over()
	return c.Client.Get(ctx, key, o, options...)
}

func (c opdevTraceClient) List(ctx context.Context, l client.ObjectList, options ...client.ListOption) error {
	id, _ := opdevTraceWho(ctx)
	if id == "" {
		return c.Client.List(ctx, l, options...)
	}
	waiting := opdevTraceWaiting{Record: "waiting", ID: id, Verb: "list"}
	waiting.Object.setKind(l)
	waiting.Object.Kind = strings.TrimSuffix(waiting.Object.Kind, "List")
	var wanted client.ListOptions
	wanted.ApplyOptions(options)
	waiting.Object.Namespace = wanted.Namespace
	ctx, over := waiting.await(ctx)
	defer over()
	return c.Client.List(ctx, l, options...)
}

// The context of a read that may wait, and what is to be called at its end.
func (waiting opdevTraceWaiting) await(ctx context.Context) (context.Context, func()) {
	wait := &opdevTraceWait{began: time.Now()}
	waiting.T = wait.began.UnixNano()
	timer := time.AfterFunc(opdevTraceLongWait, func() {
		if !wait.over.Load() {
			opdevTraceSend(waiting)
		}
	})
	return context.WithValue(ctx, opdevTraceWaitKey{}, wait), func() {
		wait.over.Store(true)
		timer.Stop()
	}
}
