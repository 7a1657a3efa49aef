// This file is no part of the project: opdev adds it to the build to show what the program's controllers do.

package main

import (
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
)

// The module of the project, and the folder of this package in it.
var opdevTraceModule, opdevTraceFolder = opdevTraceMain()

func opdevTraceMain() (string, string) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Path == "" {
		return "", ""
	}
	return info.Main.Path, strings.TrimPrefix(strings.TrimPrefix(info.Path, info.Main.Path), "/")
}

// Places by stack: to name the frames of one costs more than to take it.
var (
	opdevTracePlaces      = map[[40]uintptr]string{}
	opdevTracePlacesMutex sync.Mutex
)

// The place in the project that the goroutine is at, such as `internal/controller/web.go:42`; empty where none is on its
// stack.
func opdevTracePlace() string {
	// The first frames are those of the transport and of net/http; deep below them is the program.
	return opdevTracePlaceFrom(8)
}

func opdevTracePlaceFrom(skip int) string {
	if opdevTraceModule == "" {
		return ""
	}
	var stack [40]uintptr
	deep := runtime.Callers(skip+1, stack[:])
	opdevTracePlacesMutex.Lock()
	defer opdevTracePlacesMutex.Unlock()
	if place, known := opdevTracePlaces[stack]; known {
		return place
	}
	place := opdevTracePlaceIn(stack[:deep])
	if len(opdevTracePlaces) >= 4096 {
		opdevTracePlaces = map[[40]uintptr]string{}
	}
	opdevTracePlaces[stack] = place
	return place
}

func opdevTracePlaceIn(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if folder, ok := opdevTraceFolderOf(frame.Function); ok {
			file := path.Join(folder, path.Base(frame.File))
			if !strings.ContainsAny(file, " \t\r\n\"") {
				return file + ":" + strconv.Itoa(frame.Line)
			}
		}
		if !more {
			return ""
		}
	}
}

// The folder of a function of the project. What opdev has added is none of it.
func opdevTraceFolderOf(function string) (string, bool) {
	if rest, ok := strings.CutPrefix(function, "main."); ok {
		return opdevTraceFolder, !strings.HasPrefix(strings.TrimLeft(rest, "(*"), "opdevTrace")
	}
	rest, ok := strings.CutPrefix(function, opdevTraceModule)
	if !ok || rest == "" || rest[0] != '/' && rest[0] != '.' {
		return "", false
	}
	// The package ends at the first dot behind the last slash.
	slash := strings.LastIndexByte(rest, '/') + 1
	dot := strings.IndexByte(rest[slash:], '.')
	if dot < 0 {
		return "", false
	}
	return strings.TrimPrefix(rest[:slash+dot], "/"), true
}
