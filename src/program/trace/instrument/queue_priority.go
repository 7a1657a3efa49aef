// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queues with priorities, of controller-runtime 0.20 and later.

func init() {
	opdevTraceWrapPriorityQueue = func(queue any, c *opdevTraceController) any {
		if inner, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			return opdevTracePriorityQueue{inner, c}
		}
		return nil
	}
}

type opdevTracePriorityQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	controller *opdevTraceController
}

func (q opdevTracePriorityQueue) opdevTraceAdd(request reconcile.Request) { q.Add(request) }

func (q opdevTracePriorityQueue) note(request reconcile.Request, after time.Duration, limited bool) {
	q.controller.added(request, after, limited, func() int { return q.NumRequeues(request) })
}

func (q opdevTracePriorityQueue) Add(request reconcile.Request) {
	q.note(request, 0, false)
	q.PriorityQueue.Add(request)
}

func (q opdevTracePriorityQueue) AddAfter(request reconcile.Request, after time.Duration) {
	q.note(request, after, false)
	q.PriorityQueue.AddAfter(request, after)
}

func (q opdevTracePriorityQueue) AddRateLimited(request reconcile.Request) {
	q.note(request, 0, true)
	q.PriorityQueue.AddRateLimited(request)
}

func (q opdevTracePriorityQueue) AddWithOpts(options priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		q.note(request, options.After, options.RateLimited)
	}
	q.PriorityQueue.AddWithOpts(options, requests...)
}

func (q opdevTracePriorityQueue) Get() (reconcile.Request, bool) {
	request, shutdown := q.PriorityQueue.Get()
	if !shutdown {
		q.controller.took(request, true)
	}
	return request, shutdown
}

func (q opdevTracePriorityQueue) GetWithPriority() (reconcile.Request, int, bool) {
	request, priority, shutdown := q.PriorityQueue.GetWithPriority()
	if !shutdown {
		q.controller.took(request, true)
	}
	return request, priority, shutdown
}

func (q opdevTracePriorityQueue) Done(request reconcile.Request) {
	q.controller.done(request)
	q.PriorityQueue.Done(request)
}
