// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Recorders of the group events.k8s.io, of controller-runtime 0.23 and 0.24.

func (m opdevTraceManager) GetEventRecorder(name string) events.EventRecorder {
	of, ok := m.Manager.(interface {
		GetEventRecorder(string) events.EventRecorder
	})
	if !ok {
		return nil
	}
	return opdevTraceNewRecorder{of.GetEventRecorder(name)}
}

type opdevTraceNewRecorder struct{ events.EventRecorder }

func (r opdevTraceNewRecorder) Eventf(about, related runtime.Object, kind, reason, action, note string, args ...interface{}) {
	opdevTraceNoteEvent(about, reason, func() string { return fmt.Sprintf(note, args...) })
	r.EventRecorder.Eventf(about, related, kind, reason, action, note, args...)
}
