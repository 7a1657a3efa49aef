// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"reflect"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queues of controller-runtime 0.19 and later.

func opdevTraceQueueFits(queue reflect.Type) bool {
	return queue == reflect.TypeOf((*workqueue.TypedRateLimitingInterface[reconcile.Request])(nil)).Elem()
}

// Set where queues have priorities.
var opdevTraceWrapPriorityQueue = func(any, *opdevTraceController) any { return nil }

func opdevTraceWrapQueue(queue any, c *opdevTraceController) any {
	if wrapped := opdevTraceWrapPriorityQueue(queue, c); wrapped != nil {
		return wrapped
	}
	if inner, ok := queue.(workqueue.TypedRateLimitingInterface[reconcile.Request]); ok {
		return opdevTraceQueue{inner, c}
	}
	return nil
}

type opdevTraceQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	controller *opdevTraceController
}

func (q opdevTraceQueue) opdevTraceAdd(request reconcile.Request) { q.Add(request) }

func (q opdevTraceQueue) note(request reconcile.Request, after time.Duration, limited bool) {
	q.controller.added(request, after, limited, func() int { return q.NumRequeues(request) })
}

func (q opdevTraceQueue) Add(request reconcile.Request) {
	q.note(request, 0, false)
	q.TypedRateLimitingInterface.Add(request)
}

func (q opdevTraceQueue) AddAfter(request reconcile.Request, after time.Duration) {
	q.note(request, after, false)
	q.TypedRateLimitingInterface.AddAfter(request, after)
}

func (q opdevTraceQueue) AddRateLimited(request reconcile.Request) {
	q.note(request, 0, true)
	q.TypedRateLimitingInterface.AddRateLimited(request)
}

func (q opdevTraceQueue) Get() (reconcile.Request, bool) {
	request, shutdown := q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.controller.took(request, false)
	}
	return request, shutdown
}

func (q opdevTraceQueue) Done(request reconcile.Request) {
	q.controller.done(request)
	q.TypedRateLimitingInterface.Done(request)
}
