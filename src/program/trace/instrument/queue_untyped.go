// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"reflect"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queues of controller-runtime 0.16 to 0.18, which hold anything.

func opdevTraceQueueFits(queue reflect.Type) bool {
	return queue == reflect.TypeOf((*workqueue.RateLimitingInterface)(nil)).Elem()
}

func opdevTraceWrapQueue(queue any, c *opdevTraceController) any {
	if inner, ok := queue.(workqueue.RateLimitingInterface); ok {
		return opdevTraceQueue{inner, c}
	}
	return nil
}

type opdevTraceQueue struct {
	workqueue.RateLimitingInterface
	controller *opdevTraceController
}

func (q opdevTraceQueue) opdevTraceAdd(request reconcile.Request) { q.Add(request) }

func (q opdevTraceQueue) note(item any, after time.Duration, limited bool) {
	if request, ok := item.(reconcile.Request); ok {
		q.controller.added(request, after, limited, func() int { return q.NumRequeues(item) })
	}
}

func (q opdevTraceQueue) Add(item any) {
	q.note(item, 0, false)
	q.RateLimitingInterface.Add(item)
}

func (q opdevTraceQueue) AddAfter(item any, after time.Duration) {
	q.note(item, after, false)
	q.RateLimitingInterface.AddAfter(item, after)
}

func (q opdevTraceQueue) AddRateLimited(item any) {
	q.note(item, 0, true)
	q.RateLimitingInterface.AddRateLimited(item)
}

func (q opdevTraceQueue) Get() (any, bool) {
	item, shutdown := q.RateLimitingInterface.Get()
	if request, ok := item.(reconcile.Request); ok && !shutdown {
		q.controller.took(request, false)
	}
	return item, shutdown
}

func (q opdevTraceQueue) Done(item any) {
	if request, ok := item.(reconcile.Request); ok {
		q.controller.done(request)
	}
	q.RateLimitingInterface.Done(item)
}
