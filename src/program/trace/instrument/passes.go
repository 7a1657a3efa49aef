// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	goruntime "runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func init() {
	if opdevTraceRung == "header" {
		opdevTraceRung = "passes"
	}
	if !opdevTraceOn {
		return
	}
	opdevTraceWho = func(ctx context.Context) (string, string) {
		if id := controller.ReconcileIDFromContext(ctx); id != "" {
			return string(id), "ctx"
		}
		if mark := opdevTraceHere(); mark != nil && mark.pass != nil {
			return mark.pass.id, "goroutine"
		}
		return "", ""
	}
	opdevTraceReadCache = opdevTraceSetOptions
	opdevTraceWrapManager = func(m manager.Manager) manager.Manager { return opdevTraceManager{m} }
	setLogger := ctrl.SetLogger
	ctrl.SetLogger = func(l logr.Logger) {
		if l.GetSink() != nil {
			l = logr.New(opdevTraceNewSink(l.GetSink(), true))
		}
		setLogger(l)
	}
}

// Marks of goroutines: a goroutine inherits the profiler's labels of the one that starts it, and the address of the
// labels is the key. So calls of a child goroutine with a context of its own are known, too.

//go:linkname opdevTraceLabels runtime/pprof.runtime_getProfLabel
func opdevTraceLabels() unsafe.Pointer

type opdevTraceMark struct {
	pass *opdevTracePass
	// Of a goroutine that delivers events: the one under way.
	event atomic.Pointer[opdevTraceCause]
	// Of the goroutine that obeys commands.
	user *atomic.Value
}

var (
	opdevTraceMarks sync.Map // address of labels -> *opdevTraceMark
	// Marks of passes that are over, for goroutines that go on; the oldest makes way.
	opdevTraceOver     [4096]unsafe.Pointer
	opdevTraceOverLock sync.Mutex
	opdevTraceOverNext int
)

func opdevTraceHere() *opdevTraceMark {
	labels := opdevTraceLabels()
	if labels == nil {
		return nil
	}
	if mark, ok := opdevTraceMarks.Load(labels); ok {
		return mark.(*opdevTraceMark)
	}
	return nil
}

// Marks this goroutine and those that it starts from now on.
func opdevTraceSetMark(ctx context.Context, name string, mark *opdevTraceMark) unsafe.Pointer {
	pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("opdev", name)))
	labels := opdevTraceLabels()
	opdevTraceMarks.Store(labels, mark)
	return labels
}

func opdevTraceForgetLater(labels unsafe.Pointer) {
	opdevTraceOverLock.Lock()
	old := opdevTraceOver[opdevTraceOverNext]
	opdevTraceOver[opdevTraceOverNext] = labels
	opdevTraceOverNext = (opdevTraceOverNext + 1) % len(opdevTraceOver)
	opdevTraceOverLock.Unlock()
	if old != nil {
		opdevTraceMarks.Delete(old)
	}
}

// The scheme tells kinds of typed objects.
var opdevTraceScheme atomic.Pointer[runtime.Scheme]

// Set where the client may wait for its own writes.
var (
	opdevTraceWrapClient = func(*manager.Options) {}
	opdevTraceWaited     = func(context.Context) int64 { return 0 }
)

func opdevTraceSetOptions(o *manager.Options) {
	opdevTraceWrapClient(o)
	sink := o.Logger.GetSink()
	if sink == nil {
		sink = ctrl.Log.GetSink()
	}
	o.Logger = logr.New(opdevTraceNewSink(sink, false))
	newCache := o.NewCache
	if newCache == nil {
		newCache = cache.New
	}
	o.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		inner, err := newCache(config, options)
		if err != nil || inner == nil {
			return inner, err
		}
		return opdevTraceCache{inner}, nil
	}
}

// Controllers come by here on their way into the manager.
type opdevTraceManager struct{ manager.Manager }

func (m opdevTraceManager) Add(r manager.Runnable) error {
	opdevTraceScheme.Store(m.GetScheme())
	opdevTraceAddController(r)
	return m.Manager.Add(r)
}

type opdevTraceController struct {
	name string
	// The queue, once it is made; an opdevTraceAdder.
	queue   atomic.Value
	lock    sync.Mutex
	pending map[reconcile.Request]*opdevTracePending
	// What led to the passes that are about to begin.
	taken map[reconcile.Request]*opdevTracePending
	// The newest cause of the pass that was taken last.
	last map[reconcile.Request]*opdevTraceCause
}

type opdevTraceAdder interface{ opdevTraceAdd(reconcile.Request) }

// What was put into the queue and is not taken yet.
type opdevTracePending struct {
	// When it was due first.
	first  int64
	causes []*opdevTraceCause
	more   int
}

type opdevTraceCause struct {
	T       int64             `json:"t"`
	Why     string            `json:"why"`
	Event   string            `json:"event,omitempty"`
	Initial bool              `json:"initial,omitempty"`
	Object  *opdevTraceObject `json:"object,omitempty"`
	Old     string            `json:"old,omitempty"`
	Pass    string            `json:"pass,omitempty"`
	Attempt int               `json:"attempt,omitempty"`
	Error   string            `json:"error,omitempty"`
	After   int64             `json:"after,omitempty"`
	// When the queue gives it out at the earliest.
	due int64
}

type opdevTraceObject struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	RV        string `json:"rv,omitempty"`
}

type opdevTraceControllerAdded struct {
	Record  string   `json:"record"`
	Name    string   `json:"name"`
	Group   string   `json:"group,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Workers int      `json:"workers"`
	Hooks   []string `json:"hooks"`
}

type opdevTraceBegin struct {
	Record     string             `json:"record"`
	T          int64              `json:"t"`
	ID         string             `json:"id"`
	Controller string             `json:"controller"`
	Namespace  string             `json:"namespace,omitempty"`
	Name       string             `json:"name"`
	Queued     int64              `json:"queued,omitempty"`
	Causes     []*opdevTraceCause `json:"causes,omitempty"`
	More       int                `json:"more,omitempty"`
}

type opdevTraceEnd struct {
	Record       string `json:"record"`
	T            int64  `json:"t"`
	ID           string `json:"id"`
	Error        string `json:"error,omitempty"`
	Terminal     bool   `json:"terminal,omitempty"`
	Panic        string `json:"panic,omitempty"`
	PanicPlace   string `json:"panicPlace,omitempty"`
	RequeueAfter int64  `json:"requeueAfter,omitempty"`
	IgnoredAfter int64  `json:"ignoredAfter,omitempty"`
	Requeue      bool   `json:"requeue,omitempty"`
	// Of the process, and how many more than at the begin.
	Goroutines int `json:"goroutines,omitempty"`
	More       int `json:"more,omitempty"`
}

var opdevTraceControllers sync.Map // name -> *opdevTraceController

// Set where queues are watched.
var opdevTraceHookQueue = func(*opdevTraceController, reflect.Value) bool { return false }

// A controller's fields are exported, though its type is not: its reconciler and what makes its queue are replaced.
func opdevTraceAddController(r manager.Runnable) {
	v := reflect.ValueOf(r)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return
	}
	v = v.Elem()
	if !strings.HasSuffix(v.Type().PkgPath(), "sigs.k8s.io/controller-runtime/pkg/internal/controller") {
		return
	}
	do, name := v.FieldByName("Do"), v.FieldByName("Name")
	if !do.IsValid() || !do.CanSet() || !name.IsValid() || name.Kind() != reflect.String {
		return
	}
	inner, ok := do.Interface().(reconcile.Reconciler)
	if !ok || do.Type() != reflect.TypeOf((*reconcile.Reconciler)(nil)).Elem() {
		return
	}
	c := &opdevTraceController{
		name:    name.String(),
		pending: map[reconcile.Request]*opdevTracePending{},
		taken:   map[reconcile.Request]*opdevTracePending{},
		last:    map[reconcile.Request]*opdevTraceCause{},
	}
	added := opdevTraceControllerAdded{Record: "controller", Name: c.name, Hooks: []string{"reconciler"}}
	queued := opdevTraceHookQueue(c, v)
	if queued {
		added.Hooks = append(added.Hooks, "queue")
	}
	do.Set(reflect.ValueOf(opdevTraceReconciler{inner, c, queued}))
	if workers := v.FieldByName("MaxConcurrentReconciles"); workers.IsValid() && workers.CanInt() {
		added.Workers = int(workers.Int())
	}
	if of := v.FieldByName("LogConstructor"); of.IsValid() && of.CanInterface() {
		if construct, ok := of.Interface().(func(*reconcile.Request) logr.Logger); ok && construct != nil {
			if sink, ok := construct(nil).GetSink().(opdevTraceSink); ok {
				added.Group, added.Kind = sink.value("controllerGroup"), sink.value("controllerKind")
			}
		}
	}
	opdevTraceControllers.Store(c.name, c)
	opdevTraceSend(added)
}

type opdevTracePass struct {
	id         string
	controller *opdevTraceController
	request    reconcile.Request
	labels     unsafe.Pointer
	// Set when the reconciler has returned.
	returned atomic.Bool
	end      opdevTraceEnd
}

type opdevTraceReconciler struct {
	reconcile.Reconciler
	controller *opdevTraceController
	// The queue says when the controller is done with a pass.
	queued bool
}

func (r opdevTraceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (result reconcile.Result, err error) {
	id := string(controller.ReconcileIDFromContext(ctx))
	if id == "" {
		return r.Reconciler.Reconcile(ctx, request)
	}
	pass := &opdevTracePass{id: id, controller: r.controller, request: request}
	pass.labels = opdevTraceSetMark(ctx, id, &opdevTraceMark{pass: pass})
	r.controller.begin(pass)
	returned, goroutines := false, goruntime.NumGoroutine()
	defer func() {
		pass.end = opdevTraceEnd{Record: "end", T: time.Now().UnixNano(), ID: id, Goroutines: goruntime.NumGoroutine()}
		pass.end.More = pass.end.Goroutines - goroutines
		if !returned {
			pass.end.Panic = opdevTraceShort(string(debug.Stack()), 16*1024)
			pass.end.PanicPlace = opdevTracePlaceFrom(2)
		} else if err != nil {
			pass.end.Error = opdevTraceShort(err.Error(), 8*1024)
			pass.end.Terminal = errors.Is(err, reconcile.TerminalError(nil))
			if !pass.end.Terminal {
				pass.end.IgnoredAfter = int64(result.RequeueAfter)
			}
		} else {
			pass.end.RequeueAfter, pass.end.Requeue = int64(result.RequeueAfter), result.Requeue //nolint:staticcheck
		}
		pass.returned.Store(true)
		if !r.queued {
			pass.finish()
		}
	}()
	result, err = r.Reconciler.Reconcile(ctx, request)
	returned = true
	return result, err
}

func (c *opdevTraceController) begin(pass *opdevTracePass) {
	begin := opdevTraceBegin{
		Record: "begin", T: time.Now().UnixNano(), ID: pass.id, Controller: c.name,
		Namespace: pass.request.Namespace, Name: pass.request.Name,
	}
	c.lock.Lock()
	if led := c.taken[pass.request]; led != nil {
		begin.Queued, begin.Causes, begin.More = led.first, led.causes, led.more
		delete(c.taken, pass.request)
	}
	c.lock.Unlock()
	opdevTraceSend(begin)
}

// The controller is done with the pass: it has decided on what comes next.
func (pass *opdevTracePass) finish() {
	pprof.SetGoroutineLabels(context.Background())
	opdevTraceForgetLater(pass.labels)
	opdevTraceSend(pass.end)
}

func opdevTraceShort(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

func opdevTraceObjectOf(o client.Object) *opdevTraceObject {
	object := &opdevTraceObject{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID()), RV: o.GetResourceVersion(),
	}
	object.setKind(o)
	return object
}

func (t *opdevTraceObject) setKind(o runtime.Object) {
	kind := o.GetObjectKind().GroupVersionKind()
	if scheme := opdevTraceScheme.Load(); scheme != nil && kind.Empty() {
		if known, err := apiutil.GVKForObject(o, scheme); err == nil {
			kind = known
		}
	}
	t.Group, t.Version, t.Kind = kind.Group, kind.Version, kind.Kind
	if t.Kind == "" {
		name := reflect.TypeOf(o).String()
		t.Kind = name[strings.LastIndex(name, ".")+1:]
	}
}

// Reads that the cache answers.
type opdevTraceCache struct{ cache.Cache }

type opdevTraceRead struct {
	Record string `json:"record"`
	T      int64  `json:"t"`
	ID     string `json:"id"`
	Took   int64  `json:"took"`
	// How long the client had waited before, until the cache had what the program wrote.
	Waited int64            `json:"waited,omitempty"`
	Verb   string           `json:"verb"`
	Object opdevTraceObject `json:"object"`
	Labels string           `json:"labels,omitempty"`
	Fields string           `json:"fields,omitempty"`
	Items  []opdevTraceItem `json:"items,omitempty"`
	Count  int              `json:"count,omitempty"`
	Error  string           `json:"error,omitempty"`
}

type opdevTraceItem struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	RV        string `json:"rv"`
}

// How many objects of a list are told.
const opdevTraceItems = 256

func (c opdevTraceCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	id, _ := opdevTraceWho(ctx)
	if id == "" {
		return c.Cache.Get(ctx, key, o, options...)
	}
	waited, began := opdevTraceWaited(ctx), time.Now()
	err := c.Cache.Get(ctx, key, o, options...)
	read := opdevTraceRead{Record: "read", T: began.UnixNano(), ID: id, Took: int64(time.Since(began)), Waited: waited, Verb: "get"}
	if err == nil {
		read.Object = *opdevTraceObjectOf(o)
	} else {
		read.Object.setKind(o)
	}
	read.Object.Namespace, read.Object.Name = key.Namespace, key.Name
	read.Error = opdevTraceReason(err)
	opdevTraceSend(read)
	return err
}

func (c opdevTraceCache) List(ctx context.Context, l client.ObjectList, options ...client.ListOption) error {
	id, _ := opdevTraceWho(ctx)
	if id == "" {
		return c.Cache.List(ctx, l, options...)
	}
	waited, began := opdevTraceWaited(ctx), time.Now()
	err := c.Cache.List(ctx, l, options...)
	read := opdevTraceRead{Record: "read", T: began.UnixNano(), ID: id, Took: int64(time.Since(began)), Waited: waited, Verb: "list"}
	read.Object.setKind(l)
	read.Object.Kind = strings.TrimSuffix(read.Object.Kind, "List")
	var wanted client.ListOptions
	wanted.ApplyOptions(options)
	read.Object.Namespace = wanted.Namespace
	if wanted.LabelSelector != nil {
		read.Labels = wanted.LabelSelector.String()
	}
	if wanted.FieldSelector != nil {
		read.Fields = wanted.FieldSelector.String()
	}
	if read.Error = opdevTraceReason(err); err == nil {
		read.Count = apimeta.LenList(l)
		_ = apimeta.EachListItem(l, func(item runtime.Object) error {
			if len(read.Items) == opdevTraceItems {
				return errors.New("enough")
			}
			if o, ok := item.(client.Object); ok {
				read.Items = append(read.Items, opdevTraceItem{o.GetNamespace(), o.GetName(), o.GetResourceVersion()})
			}
			return nil
		})
	}
	opdevTraceSend(read)
	return err
}

func opdevTraceReason(err error) string {
	if err == nil {
		return ""
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return opdevTraceShort(err.Error(), 1024)
}

// The log. A sink under the manager's logger records the lines that carry the id of a pass; a loose one, under the
// logger of the whole program, records those of the same goroutine that carry none. So no line is recorded twice.
type opdevTraceSink struct {
	inner logr.LogSink
	loose bool
	// Whether the inner sink knows of this frame.
	deep   bool
	name   string
	id     string
	values []any
}

func opdevTraceNewSink(inner logr.LogSink, loose bool) opdevTraceSink {
	return opdevTraceSink{inner: inner, loose: loose}.deepen()
}

func (s opdevTraceSink) deepen() opdevTraceSink {
	if d, ok := s.inner.(logr.CallDepthLogSink); ok && !s.deep {
		s.inner, s.deep = d.WithCallDepth(1), true
	}
	return s
}

func (s opdevTraceSink) Init(logr.RuntimeInfo) {}

func (s opdevTraceSink) pass() string {
	if !s.loose {
		return s.id
	}
	if s.id == "" {
		if mark := opdevTraceHere(); mark != nil && mark.pass != nil {
			return mark.pass.id
		}
	}
	return ""
}

// Lines up to V(1) are recorded even where the program's log leaves them out.
func (s opdevTraceSink) Enabled(level int) bool {
	return s.inner.Enabled(level) || level <= 1 && s.pass() != ""
}

func (s opdevTraceSink) WithName(name string) logr.LogSink {
	s.inner = s.inner.WithName(name)
	if s.name != "" {
		name = s.name + "." + name
	}
	s.name = name
	return s.deepen()
}

func (s opdevTraceSink) WithValues(values ...any) logr.LogSink {
	s.inner = s.inner.WithValues(values...)
	s.values = append(s.values[:len(s.values):len(s.values)], values...)
	if s.id == "" {
		s.id = opdevTraceSink{values: values}.value("reconcileID")
	}
	return s.deepen()
}

func (s opdevTraceSink) WithCallDepth(depth int) logr.LogSink {
	if d, ok := s.inner.(logr.CallDepthLogSink); ok {
		s.inner = d.WithCallDepth(depth)
	}
	return s
}

func (s opdevTraceSink) value(key string) string {
	for i := len(s.values) - 2; i >= 0; i -= 2 {
		if s.values[i] == key {
			return fmt.Sprint(s.values[i+1])
		}
	}
	return ""
}

type opdevTraceLog struct {
	Record  string      `json:"record"`
	T       int64       `json:"t"`
	ID      string      `json:"id"`
	Level   int         `json:"level"`
	Logger  string      `json:"logger,omitempty"`
	Message string      `json:"message"`
	Error   string      `json:"error,omitempty"`
	Values  [][2]string `json:"values,omitempty"`
	Printed string      `json:"printed,omitempty"`
}

// The key under which a printed line names its record, and how many lines have been named.
const opdevTracePrintedKey = "opdev"

var opdevTracePrinted atomic.Uint64

// Records a line of a pass. The answer is the values to print: where the line is printed, too, the first of them names
// the record, so that opdev shows the line once. A line whose record found no room has no name.
func (s opdevTraceSink) record(id string, level int, message string, err error, values []any, printed bool) []any {
	line := opdevTraceLog{
		Record: "log", T: time.Now().UnixNano(), ID: id, Level: level, Logger: s.name,
		Message: opdevTraceShort(message, 4*1024),
	}
	if err != nil {
		line.Error = opdevTraceShort(err.Error(), 4*1024)
	}
	line.Values = opdevTraceTexts(opdevTraceTexts(nil, s.values), values)
	if printed {
		line.Printed = fmt.Sprintf("%d.%d", os.Getpid(), opdevTracePrinted.Add(1))
	}
	if !opdevTraceSend(line) || !printed {
		return values
	}
	return append([]any{opdevTracePrintedKey, line.Printed}, values...)
}

func (s opdevTraceSink) Info(level int, message string, values ...any) {
	printed := s.inner.Enabled(level)
	if id := s.pass(); id != "" {
		values = s.record(id, level, message, nil, values, printed)
	}
	if printed {
		s.inner.Info(level, message, values...)
	}
}

func (s opdevTraceSink) Error(err error, message string, values ...any) {
	if id := s.pass(); id != "" {
		values = s.record(id, -1, message, err, values, true)
	}
	s.inner.Error(err, message, values...)
}

// Keys and values in text, but for those by which the log names the pass.
func opdevTraceTexts(texts [][2]string, values []any) [][2]string {
	for i := 0; i+1 < len(values) && len(texts) < 32; i += 2 {
		key := fmt.Sprint(values[i])
		switch key {
		case "controller", "controllerGroup", "controllerKind", "namespace", "name", "reconcileID", "object":
			continue
		}
		text := opdevTraceText(values[i+1])
		if i >= 2 && fmt.Sprint(values[i-2]) == "controllerKind" && fmt.Sprint(values[i-1]) == key {
			continue
		}
		texts = append(texts, [2]string{key, text})
	}
	return texts
}

func opdevTraceText(value any) (text string) {
	defer func() {
		// A String method may panic, as of a nil pointer.
		if recover() != nil {
			text = fmt.Sprintf("(%T)", value)
		}
	}()
	switch v := value.(type) {
	case nil:
		return "null"
	case string:
		return opdevTraceShort(v, 1024)
	case error:
		return opdevTraceShort(v.Error(), 1024)
	case client.Object:
		// Whole objects may hold secrets.
		o := opdevTraceObjectOf(v)
		return o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
	case logr.Marshaler:
		value = v.MarshalLog()
	case fmt.Stringer:
		return opdevTraceShort(v.String(), 1024)
	}
	if b, err := json.Marshal(value); err == nil {
		return opdevTraceShort(string(b), 1024)
	}
	return opdevTraceShort(fmt.Sprint(value), 1024)
}
