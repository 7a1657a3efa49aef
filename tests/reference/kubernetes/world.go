package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/url"
	"strings"
)

// world makes requests: objects of some kinds under a few names in one namespace, and everything one does to them.
type world struct {
	random    *rand.Rand
	namespace string
	kinds     []kind
	// The newest form of what the reference has, by path.
	objects map[string]map[string]any
}

// How many names objects have.
const names = 5

type kind struct {
	apiVersion, name, plural string
	status, scale, strategic bool
	weight                   int
	make                     func(*rand.Rand) map[string]any
}

func newWorld(random *rand.Rand, namespace string) *world {
	return &world{random: random, namespace: namespace, kinds: kinds(), objects: map[string]map[string]any{}}
}

// prepare are the requests before the random ones.
func (w *world) prepare() []request {
	return []request{
		{method: "POST", path: "/api/v1/namespaces", contentType: "application/json",
			body: fmt.Sprintf(`{"metadata":{"name":%q}}`, w.namespace)},
		// Admission asks for it, and mounts its token otherwise.
		{method: "POST", path: "/api/v1/namespaces/" + w.namespace + "/serviceaccounts", contentType: "application/json",
			body: `{"metadata":{"name":"default"},"automountServiceAccountToken":false}`},
		{method: "PATCH", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.compare.example.com?fieldManager=compare&force=true",
			contentType: "application/apply-patch+yaml", body: widgets},
	}
}

func (w *world) served() []string {
	return []string{"/apis/compare.example.com/v1/namespaces/" + w.namespace + "/widgets"}
}

func (k kind) collection(namespace string) string {
	prefix := "/apis/" + k.apiVersion
	if k.apiVersion == "v1" {
		prefix = "/api/v1"
	}
	return prefix + "/namespaces/" + namespace + "/" + k.plural
}

func (w *world) pick() kind {
	total := 0
	for _, kind := range w.kinds {
		total += kind.weight
	}
	at := w.random.Intn(total)
	for _, kind := range w.kinds {
		if at -= kind.weight; at < 0 {
			return kind
		}
	}
	return w.kinds[0]
}

// next is one more request.
func (w *world) next() request {
	kind := w.pick()
	name := fmt.Sprintf("o%d", w.random.Intn(names))
	path := kind.collection(w.namespace) + "/" + name
	made := w.verb(kind, name, path)
	made.class = kind.plural + " " + made.class
	if made.object == "" {
		made.object = path
	}
	return made
}

func (w *world) verb(kind kind, name, path string) request {
	json := "application/json"
	exists := w.objects[path] != nil
	switch at := w.random.Intn(100); {
	case !exists && at < 70, at < 12:
		return request{class: "create", method: "POST", path: kind.collection(w.namespace) + w.query(true), contentType: json,
			body: text(w.object(kind, name))}
	case at < 17:
		return request{class: "get", method: "GET", path: path}
	case at < 22:
		return request{class: "list", method: "GET", path: kind.collection(w.namespace) + w.selection()}
	case at < 36:
		return request{class: "update", method: "PUT", path: path + w.query(true), contentType: json, body: text(w.update(kind, name))}
	case at < 48:
		return request{class: "merge patch", method: "PATCH", path: path + w.query(true),
			contentType: "application/merge-patch+json", body: text(w.partial(kind, name))}
	case at < 56:
		return request{class: "json patch", method: "PATCH", path: path + w.query(true),
			contentType: "application/json-patch+json", body: w.jsonPatch(kind, path)}
	case at < 66:
		return request{class: "strategic patch", method: "PATCH", path: path + w.query(true),
			contentType: "application/strategic-merge-patch+json", body: text(w.partial(kind, name))}
	case at < 84:
		return request{class: "apply", method: "PATCH", path: path + w.applyQuery(),
			contentType: "application/apply-patch+yaml", body: text(w.applied(kind, name))}
	case at < 89:
		return w.subresource(kind, name, path)
	case at < 97:
		return request{class: "delete", method: "DELETE", path: path + w.chance(10, "?dryRun=All"), contentType: json, body: w.deleteOptions()}
	case at < 98:
		if kind.plural == "serviceaccounts" {
			// Without the default one every Pod is refused from then on, and nothing is compared any more.
			return request{class: "list", method: "GET", path: kind.collection(w.namespace) + w.selection()}
		}
		return request{class: "delete collection", method: "DELETE", path: kind.collection(w.namespace) + strings.Replace(w.selection(), "?resourceVersion=0", "", 1), object: "-"}
	default:
		return request{class: "update of another name", method: "PUT", path: path, contentType: json, body: text(w.object(kind, "other"))}
	}
}

func (w *world) subresource(kind kind, name, path string) request {
	which, body := "status", map[string]any{"apiVersion": kind.apiVersion, "kind": kind.name, "metadata": map[string]any{"name": name}}
	if kind.scale && w.random.Intn(2) == 0 {
		which = "scale"
		body = map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": name, "namespace": w.namespace},
			"spec": map[string]any{"replicas": w.random.Intn(6) - 1}}
	} else {
		body["status"] = map[string]any{"replicas": w.random.Intn(4), "observedGeneration": 1, "note": "n"}
		body["spec"] = kind.make(w.random)["spec"]
	}
	made := request{class: which, path: path + "/" + which, object: path}
	switch w.random.Intn(4) {
	case 0:
		made.method = "GET"
	case 1:
		made.method, made.contentType = "PUT", "application/json"
		body["metadata"].(map[string]any)["resourceVersion"] = "{rv}"
	case 2:
		made.method, made.contentType = "PATCH", "application/merge-patch+json"
		delete(body, "metadata")
	default:
		made.method, made.contentType = "PATCH", "application/apply-patch+yaml"
		made.path += w.applyQuery()
	}
	made.class += " " + strings.ToLower(made.method)
	if made.method != "GET" {
		made.body = text(body)
	}
	return made
}

func (w *world) chance(percent int, text string) string {
	if w.random.Intn(100) < percent {
		return text
	}
	return ""
}

func (w *world) query(validation bool) string {
	values := url.Values{}
	if w.random.Intn(8) == 0 {
		values.Set("dryRun", "All")
	}
	if w.random.Intn(3) == 0 {
		values.Set("fieldManager", fieldManager(w.random))
	}
	if validation && w.random.Intn(3) == 0 {
		values.Set("fieldValidation", []string{"Strict", "Warn", "Ignore"}[w.random.Intn(3)])
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

func fieldManager(random *rand.Rand) string {
	return []string{"one", "two", "three"}[random.Intn(3)]
}

func (w *world) applyQuery() string {
	return "?fieldManager=" + fieldManager(w.random) + w.chance(40, "&force=true") + w.chance(10, "&dryRun=All") +
		w.chance(15, "&fieldValidation=Strict")
}

func (w *world) selection() string {
	switch w.random.Intn(6) {
	case 0:
		return "?labelSelector=" + url.QueryEscape([]string{"app=a", "app!=a", "app in (a,b)", "!app", "app", "app=="}[w.random.Intn(6)])
	case 1:
		return "?fieldSelector=" + url.QueryEscape([]string{"metadata.name=o1", "metadata.name!=o1", "spec.nope=1", "type=Opaque"}[w.random.Intn(4)])
	case 2:
		return "?resourceVersion=0"
	}
	return ""
}

func (w *world) deleteOptions() string {
	switch w.random.Intn(7) {
	case 0:
		return `{"propagationPolicy":"Foreground"}`
	case 1:
		return `{"propagationPolicy":"Orphan"}`
	case 2:
		return `{"preconditions":{"uid":"{uid}"}}`
	case 3:
		return `{"preconditions":{"resourceVersion":"1"}}`
	case 4:
		return `{"gracePeriodSeconds":-1}`
	case 5:
		return `{"propagationPolicy":"Sideways"}`
	}
	return ""
}

// learn keeps what the reference has answered.
func (w *world) learn(ask request, answer *answer) {
	if strings.Contains(ask.path, "dryRun") || ask.method == "GET" || answer.code >= 300 {
		return
	}
	if ask.method == "DELETE" {
		object, _ := answer.body.(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil || metadata["deletionTimestamp"] == nil {
			w.forget(ask.object)
		}
		if ask.object == "-" {
			w.objects = map[string]map[string]any{}
		}
		return
	}
	if object, ok := answer.body.(map[string]any); ok && object["kind"] != "Scale" {
		w.objects[ask.object] = object
	}
}

func (w *world) forget(path string) {
	delete(w.objects, path)
}

func text(value any) string {
	raw, _ := json.Marshal(value)
	return string(raw)
}
