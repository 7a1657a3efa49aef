// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// Recorders of the group events.k8s.io, of controller-runtime 0.25 and later: they take annotations, too.

func (m opdevTraceManager) GetEventRecorder(name string) recorder.EventRecorder {
	return opdevTraceNewRecorder{m.Manager.GetEventRecorder(name)}
}

type opdevTraceNewRecorder struct{ recorder.EventRecorder }

func (r opdevTraceNewRecorder) Eventf(about, related runtime.Object, kind, reason, action, note string, args ...interface{}) {
	opdevTraceNoteEvent(about, reason, func() string { return fmt.Sprintf(note, args...) })
	r.EventRecorder.Eventf(about, related, kind, reason, action, note, args...)
}

func (r opdevTraceNewRecorder) AnnotatedEventf(about, related runtime.Object, annotations map[string]string, kind, reason, action, note string, args ...interface{}) {
	opdevTraceNoteEvent(about, reason, func() string { return fmt.Sprintf(note, args...) })
	r.EventRecorder.AnnotatedEventf(about, related, annotations, kind, reason, action, note, args...)
}
