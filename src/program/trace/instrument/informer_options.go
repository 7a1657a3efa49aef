// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import toolscache "k8s.io/client-go/tools/cache"

// A method of informers since controller-runtime 0.21.

func (i opdevTraceSharedInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.SharedIndexInformer.AddEventHandlerWithOptions(opdevTraceHandlerOf(h), o)
}

func (i opdevTraceInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.Informer.AddEventHandlerWithOptions(opdevTraceHandlerOf(h), o)
}
