package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
)

type object = map[string]any

// object is a whole one, broken now and then.
func (w *world) object(kind kind, name string) object {
	made := kind.make(w.random)
	made["apiVersion"], made["kind"] = kind.apiVersion, kind.name
	made["metadata"] = w.metadata(name)
	if w.random.Intn(12) == 0 {
		breakIt(w.random, made)
	}
	return made
}

func (w *world) metadata(name string) object {
	metadata := object{"name": name, "namespace": w.namespace}
	if w.random.Intn(2) == 0 {
		metadata["labels"] = object{"app": pick(w.random, "a", "b", "c")}
	}
	if w.random.Intn(3) == 0 {
		metadata["annotations"] = object{"note": pick(w.random, "x", "y"), "example.com/long": strings.Repeat("z", w.random.Intn(9))}
	}
	if w.random.Intn(10) == 0 {
		metadata["finalizers"] = []any{"example.com/hold"}
	}
	if w.random.Intn(15) == 0 {
		metadata["ownerReferences"] = []any{object{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
			"uid": "11111111-2222-3333-4444-555555555555", "controller": w.random.Intn(2) == 0}}
	}
	switch w.random.Intn(120) {
	case 0:
		metadata["name"] = pick(w.random, "Upper", "has_underscore", "", "-dash", strings.Repeat("n", 254))
	case 1:
		metadata["labels"] = object{"bad key!": "v", "ok": "not ok!"}
	case 2:
		metadata["namespace"] = "elsewhere"
	case 3:
		metadata["finalizers"] = []any{"nodomain"}
	case 4:
		metadata["labels"] = object{"n": 5}
	case 5:
		metadata["uid"] = "someone-else"
	case 6:
		metadata["generateName"] = "gen-"
	case 7:
		metadata["resourceVersion"] = "12"
	}
	return metadata
}

func (w *world) update(kind kind, name string) object {
	made := w.object(kind, name)
	metadata, _ := made["metadata"].(object)
	if metadata == nil {
		return made
	}
	switch w.random.Intn(10) {
	case 0:
		metadata["resourceVersion"] = "1"
	case 1, 2:
	default:
		metadata["resourceVersion"] = "{rv}"
	}
	return made
}

// partial is some of an object, with removals.
func (w *world) partial(kind kind, name string) object {
	made := w.object(kind, name)
	delete(made, "apiVersion")
	delete(made, "kind")
	if w.random.Intn(2) == 0 {
		delete(made, "metadata")
	} else if metadata, ok := made["metadata"].(object); ok {
		delete(metadata, "name")
		delete(metadata, "namespace")
		if w.random.Intn(4) == 0 {
			metadata["labels"] = nil
		}
	}
	prune(w.random, made, 3)
	return made
}

// prune drops and nulls some of what there is.
func prune(random *rand.Rand, value object, one int) {
	for _, name := range sorted(value) {
		switch inner := value[name].(type) {
		case object:
			prune(random, inner, one)
		default:
			switch random.Intn(one * 3) {
			case 0:
				value[name] = nil
			case 1, 2:
				delete(value, name)
			}
		}
	}
}

func (w *world) applied(kind kind, name string) object {
	made := w.object(kind, name)
	metadata, _ := made["metadata"].(object)
	if metadata == nil {
		return made
	}
	if w.random.Intn(3) == 0 {
		delete(metadata, "namespace")
	}
	if w.random.Intn(4) > 0 {
		delete(metadata, "ownerReferences")
	}
	for _, part := range []string{"spec", "data"} {
		if inner, ok := made[part].(object); ok && w.random.Intn(2) == 0 {
			for _, name := range sorted(inner) {
				if w.random.Intn(3) == 0 {
					delete(inner, name)
				}
			}
		}
	}
	return made
}

func (w *world) jsonPatch(kind kind, path string) string {
	var operations []any
	for range 1 + w.random.Intn(3) {
		at := "/metadata/labels/app"
		if known := w.objects[path]; known != nil && w.random.Intn(3) > 0 {
			at = somewhere(w.random, known)
		}
		operation := object{"op": pick(w.random, "add", "replace", "remove", "test", "copy", "move"), "path": at}
		switch operation["op"] {
		case "copy", "move":
			operation["from"] = pick(w.random, "/metadata/labels", "/metadata/labels/app", "/metadata/name")
		case "remove":
		default:
			operation["value"] = anything(w.random)
		}
		operations = append(operations, operation)
	}
	return text(operations)
}

// somewhere is a JSON pointer into an object.
func somewhere(random *rand.Rand, value any) string {
	path := ""
	for {
		switch inner := value.(type) {
		case object:
			names := sorted(inner)
			if len(names) == 0 {
				return path + "/new"
			}
			name := names[random.Intn(len(names))]
			if path == "" && name == "metadata" {
				return "/metadata/" + pick(random, "labels", "annotations", "labels/app", "name", "resourceVersion")
			}
			path += "/" + strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
			value = inner[name]
			if random.Intn(4) == 0 {
				return path
			}
		case []any:
			if len(inner) == 0 || random.Intn(5) == 0 {
				return path + "/-"
			}
			at := random.Intn(len(inner))
			path += fmt.Sprintf("/%d", at)
			value = inner[at]
		default:
			return path
		}
	}
}

func anything(random *rand.Rand) any {
	return []any{"text", 3, -1, true, nil, object{"k": "v"}, []any{"a", "b"}, 1.5, "", object{}}[random.Intn(10)]
}

// breakIt changes one thing so that it may not be valid any more.
func breakIt(random *rand.Rand, value object) {
	names := sorted(value)
	name := names[random.Intn(len(names))]
	if name == "apiVersion" || name == "kind" {
		if random.Intn(6) == 0 {
			value[name] = pick(random, "", "Nope", "apps/v9")
		}
		return
	}
	inner, ok := value[name].(object)
	if ok && len(inner) > 0 && random.Intn(4) > 0 {
		breakIt(random, inner)
		return
	}
	switch random.Intn(5) {
	case 0:
		delete(value, name)
	case 1:
		value["unknownField"] = anything(random)
	case 2:
		value[strings.ToUpper(name[:1])+name[1:]] = value[name]
	default:
		value[name] = anything(random)
	}
}

func sorted(value object) []string {
	names := make([]string, 0, len(value))
	for name := range value {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func pick(random *rand.Rand, from ...string) string {
	return from[random.Intn(len(from))]
}

func clone(value object) object {
	raw, _ := json.Marshal(value)
	var out object
	_ = json.Unmarshal(raw, &out)
	return out
}
