// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/tools/reference"
)

// Events are sent by a goroutine that all passes share, so the pass is noted where the Event is recorded.

type opdevTraceRecorded struct {
	Record  string           `json:"record"`
	T       int64            `json:"t"`
	ID      string           `json:"id"`
	Object  opdevTraceObject `json:"object"`
	Reason  string           `json:"reason"`
	Message string           `json:"message,omitempty"`
}

func opdevTraceNoteEvent(about runtime.Object, reason string, message func() string) {
	mark := opdevTraceHere()
	scheme := opdevTraceScheme.Load()
	if mark == nil || mark.pass == nil || scheme == nil {
		return
	}
	of, err := reference.GetReference(scheme, about)
	if err != nil {
		return
	}
	kind := of.GroupVersionKind()
	opdevTraceSend(opdevTraceRecorded{
		Record: "recorded", T: time.Now().UnixNano(), ID: mark.pass.id, Reason: reason,
		Message: opdevTraceBeginning(message(), 256),
		Object: opdevTraceObject{
			Group: kind.Group, Version: kind.Version, Kind: kind.Kind,
			Namespace: of.Namespace, Name: of.Name, UID: string(of.UID),
		},
	})
}

// The beginning of a text, up to a whole letter.
func opdevTraceBeginning(text string, most int) string {
	for at := range text {
		if at > most {
			return text[:at]
		}
	}
	return text
}

func (m opdevTraceManager) GetEventRecorderFor(name string) record.EventRecorder {
	of, ok := m.Manager.(interface {
		GetEventRecorderFor(string) record.EventRecorder
	})
	if !ok {
		return nil
	}
	return opdevTraceRecorder{of.GetEventRecorderFor(name)}
}

type opdevTraceRecorder struct{ record.EventRecorder }

func (r opdevTraceRecorder) Event(about runtime.Object, kind, reason, message string) {
	opdevTraceNoteEvent(about, reason, func() string { return message })
	r.EventRecorder.Event(about, kind, reason, message)
}

func (r opdevTraceRecorder) Eventf(about runtime.Object, kind, reason, format string, args ...interface{}) {
	opdevTraceNoteEvent(about, reason, func() string { return fmt.Sprintf(format, args...) })
	r.EventRecorder.Eventf(about, kind, reason, format, args...)
}

func (r opdevTraceRecorder) AnnotatedEventf(about runtime.Object, annotations map[string]string, kind, reason, format string, args ...interface{}) {
	opdevTraceNoteEvent(about, reason, func() string { return fmt.Sprintf(format, args...) })
	r.EventRecorder.AnnotatedEventf(about, annotations, kind, reason, format, args...)
}
