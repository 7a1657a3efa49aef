package main

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The order of calls that a busy machine makes of two goroutines: a source notes the cause of an adding, the queue gives
// out the same request for an earlier cause, and then only the source adds. Run with the files that opdev adds.
func TestACauseThatIsNotedBesideATakeLeadsToTheNextPassToo(t *testing.T) {
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "one"}}
	c := &opdevTraceController{
		pending: map[reconcile.Request]*opdevTracePending{},
		taken:   map[reconcile.Request]*opdevTracePending{},
		last:    map[reconcile.Request]*opdevTraceCause{},
	}
	mark := &opdevTraceMark{}
	opdevTraceSetMark(context.Background(), "events", mark)
	note := func(name string) {
		mark.event.Store(&opdevTraceCause{Why: "event", Event: "add", Object: &opdevTraceObject{Name: name}})
		c.added(request, 0, false, func() int { return 0 })
	}
	pass := func() (names []string) {
		for _, cause := range c.taken[request].causes {
			names = append(names, cause.Object.Name)
		}
		delete(c.taken, request)
		return names
	}

	note("early")
	note("late")
	c.took(request, true)
	if names := pass(); len(names) != 2 {
		t.Fatalf("the first pass has the causes %v", names)
	}
	// The source goes on: it adds what it has noted, and the queue gives it out.
	c.took(request, true)
	if names := pass(); len(names) != 1 || names[0] != "late" {
		t.Fatalf("the second pass has the causes %v", names)
	}
	// A cause of its own is the only one.
	note("own")
	c.took(request, true)
	if names := pass(); len(names) != 1 || names[0] != "own" {
		t.Fatalf("the third pass has the causes %v", names)
	}

	for len(c.last) < opdevTraceLast {
		other := request
		other.Name = time.Duration(len(c.last)).String()
		c.added(other, 0, false, func() int { return 0 })
		c.took(other, true)
	}
	note("own")
	c.took(request, true)
	if len(c.last) != 1 {
		t.Fatalf("%d last causes are kept", len(c.last))
	}
}
