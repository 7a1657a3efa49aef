// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func init() {
	opdevTraceRung = "full"
	if !opdevTraceOn {
		return
	}
	opdevTraceHookQueue = opdevTraceReplaceQueue
	opdevTraceObey = opdevTraceEnqueue
	opdevTraceReadInformers = func(o *manager.Options) {
		newCache := o.NewCache
		o.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
			inner, err := newCache(config, options)
			if err != nil || inner == nil {
				return inner, err
			}
			return opdevTraceInformers{inner}, nil
		}
	}
}

// The field that makes a controller's queue is called NewQueue or, before 0.18, MakeQueue; what it takes and gives
// has changed over the versions. The other file with queues knows the types of this one.
func opdevTraceReplaceQueue(c *opdevTraceController, v reflect.Value) bool {
	field := v.FieldByName("NewQueue")
	if !field.IsValid() {
		field = v.FieldByName("MakeQueue")
	}
	if !field.IsValid() || !field.CanSet() || field.Kind() != reflect.Func || field.IsNil() || field.Type().NumOut() != 1 {
		return false
	}
	out := field.Type().Out(0)
	if !opdevTraceQueueFits(out) {
		return false
	}
	made := reflect.ValueOf(field.Interface())
	field.Set(reflect.MakeFunc(field.Type(), func(in []reflect.Value) []reflect.Value {
		results := made.Call(in)
		if queue := opdevTraceWrapQueue(results[0].Interface(), c); queue != nil {
			c.queue.Store(queue)
			as := reflect.New(out).Elem()
			as.Set(reflect.ValueOf(queue))
			results[0] = as
		}
		return results
	}))
	return true
}

// Something is put into the queue: at once, after a time, or with the delay of its rate limiter.
func (c *opdevTraceController) added(request reconcile.Request, after time.Duration, limited bool, failures func() int) {
	now := time.Now().UnixNano()
	cause := opdevTraceCause{T: now, Why: "other"}
	if mark := opdevTraceHere(); mark != nil {
		event := mark.event.Load()
		switch {
		case event != nil:
			cause = *event
		case mark.user != nil:
			cause.Why, _ = mark.user.Load().(string)
		case mark.pass != nil:
			cause.Pass = mark.pass.id
			if mark.pass.returned.Load() && mark.pass.controller == c && mark.pass.request == request {
				cause.Why = "requeue"
				if mark.pass.end.Error != "" || mark.pass.end.Panic != "" {
					cause.Why, cause.Attempt = "retry", failures()+1
					cause.Error = opdevTraceShort(mark.pass.end.Error, 1024)
					if mark.pass.end.Panic != "" {
						cause.Error = "panic"
					}
				}
			}
		}
	}
	cause.After, cause.due = int64(after), now+int64(after)
	if limited {
		// The limiter does not say. The usual one begins with 5 ms and doubles.
		doubled := failures()
		if doubled > 17 {
			doubled = 17
		}
		cause.due = now + int64(5*time.Millisecond)<<uint(doubled)*3/4
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	pending := c.pending[request]
	if pending == nil {
		pending = &opdevTracePending{}
		c.pending[request] = pending
	}
	if len(pending.causes) < 32 {
		pending.causes = append(pending.causes, &cause)
	} else {
		pending.more++
	}
}

// Of how many requests the last cause is kept.
const opdevTraceLast = 4096

// The queue gives a request to a worker. What is due leads to the pass that begins now; what is not waits for its own
// turn, unless the queue knows each request only once.
//
// A cause is noted before its request is added. If the queue gives out the same request in between, for an earlier
// cause, both causes are taken with it, and the pass that follows from the adding finds none. It has the last one then.
func (c *opdevTraceController) took(request reconcile.Request, once bool) {
	now := time.Now().UnixNano()
	c.lock.Lock()
	defer c.lock.Unlock()
	pending := c.pending[request]
	if pending == nil {
		if last := c.last[request]; last != nil {
			c.taken[request] = &opdevTracePending{first: now, causes: []*opdevTraceCause{last}}
		}
		return
	}
	delete(c.pending, request)
	due, later := []*opdevTraceCause{}, []*opdevTraceCause{}
	for _, cause := range pending.causes {
		if cause.due <= now {
			due = append(due, cause)
		} else {
			later = append(later, cause)
		}
	}
	if len(due) == 0 {
		// Its delay was a guess.
		due, later = later, nil
	}
	if len(later) > 0 && !once {
		c.pending[request] = &opdevTracePending{causes: later}
	}
	first := now
	for _, cause := range due {
		if cause.due < first {
			first = cause.due
		}
	}
	c.taken[request] = &opdevTracePending{first: first, causes: due, more: pending.more}
	// To forget them all costs a cause only where one of them is about to be needed.
	if len(c.last) >= opdevTraceLast {
		c.last = map[reconcile.Request]*opdevTraceCause{}
	}
	c.last[request] = due[len(due)-1]
}

// The controller is done with a request.
func (c *opdevTraceController) done(request reconcile.Request) {
	c.lock.Lock()
	delete(c.taken, request)
	c.lock.Unlock()
	if mark := opdevTraceHere(); mark != nil && mark.pass != nil && mark.pass.returned.Load() && mark.pass.controller == c && mark.pass.request == request {
		mark.pass.finish()
	}
}

var (
	opdevTraceUser sync.Once
	// Why the command under way was sent.
	opdevTraceUserWhy atomic.Value
)

// Puts an object into the queues of one controller, or of all.
func opdevTraceEnqueue(command opdevTraceCommand) {
	if command.Do != "reconcile" {
		return
	}
	opdevTraceUser.Do(func() {
		opdevTraceSetMark(context.Background(), "user", &opdevTraceMark{user: &opdevTraceUserWhy})
	})
	why := command.Why
	if why == "" {
		why = "user"
	}
	opdevTraceUserWhy.Store(why)
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: command.Namespace, Name: command.Name}}
	opdevTraceControllers.Range(func(name, c any) bool {
		if command.Controller == "" || command.Controller == name {
			if queue, ok := c.(*opdevTraceController).queue.Load().(opdevTraceAdder); ok {
				queue.opdevTraceAdd(request)
			}
		}
		return true
	})
}

// Caches whose informers say which event is being delivered.
type opdevTraceInformers struct{ cache.Cache }

func (c opdevTraceInformers) GetInformer(ctx context.Context, o client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, o, options...)
	return opdevTraceInformerOf(informer), err
}

func (c opdevTraceInformers) GetInformerForKind(ctx context.Context, kind schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformerForKind(ctx, kind, options...)
	return opdevTraceInformerOf(informer), err
}

func opdevTraceInformerOf(informer cache.Informer) cache.Informer {
	switch i := informer.(type) {
	case nil:
		return nil
	case toolscache.SharedIndexInformer:
		return opdevTraceSharedInformer{i}
	}
	return opdevTraceInformer{informer}
}

// The common kind of informer, so that a program that asks for it as such still gets it.
type opdevTraceSharedInformer struct{ toolscache.SharedIndexInformer }

func (i opdevTraceSharedInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandler(opdevTraceHandlerOf(h))
}

func (i opdevTraceSharedInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(opdevTraceHandlerOf(h), period)
}

type opdevTraceInformer struct{ cache.Informer }

func (i opdevTraceInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandler(opdevTraceHandlerOf(h))
}

func (i opdevTraceInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithResyncPeriod(opdevTraceHandlerOf(h), period)
}

// Delivers events, and says on its goroutine which one is under way, so that a queue knows why something is added.
type opdevTraceHandler struct {
	inner  toolscache.ResourceEventHandler
	mark   *opdevTraceMark
	labels unsafe.Pointer
}

func opdevTraceHandlerOf(h toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	if h == nil {
		return nil
	}
	return &opdevTraceHandler{inner: h, mark: &opdevTraceMark{}}
}

// An informer calls its handler from one goroutine of its own.
func (h *opdevTraceHandler) deliver(event string, object, old any, initial bool, call func()) {
	if h.labels == nil || opdevTraceLabels() != h.labels {
		if h.labels != nil {
			opdevTraceMarks.Delete(h.labels)
		}
		h.labels = opdevTraceSetMark(context.Background(), "events", h.mark)
	}
	cause := &opdevTraceCause{T: time.Now().UnixNano(), Why: "event", Event: event, Initial: initial}
	if t, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = t.Obj
	}
	if o, ok := object.(client.Object); ok {
		cause.Object = opdevTraceObjectOf(o)
	}
	if o, ok := old.(client.Object); ok {
		cause.Old = o.GetResourceVersion()
	}
	h.mark.event.Store(cause)
	defer h.mark.event.Store(nil)
	call()
}

func (h *opdevTraceHandler) OnAdd(o any, initial bool) {
	h.deliver("add", o, nil, initial, func() { h.inner.OnAdd(o, initial) })
}

func (h *opdevTraceHandler) OnUpdate(old, o any) {
	h.deliver("update", o, old, false, func() { h.inner.OnUpdate(old, o) })
}

func (h *opdevTraceHandler) OnDelete(o any) {
	h.deliver("delete", o, nil, false, func() { h.inner.OnDelete(o) })
}
