package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// compare: the same random requests to two API servers, one after the other; what they answer is made comparable
// and every difference is a JSON line on standard output, a table of their classes on standard error.
func compare() error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	seed := flags.Int64("seed", 1, "where the random requests start")
	count := flags.Int("requests", 1000, "how many")
	left := flags.String("reference", "", "kubeconfig of the real server")
	right := flags.String("other", "", "kubeconfig of the other one")
	show := flags.String("show", "", "two examples of each class whose name contains this")
	trace := flags.String("trace", "", "a file for every request and both answers' codes")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	servers := []*server{}
	for _, path := range []string{*left, *right} {
		made, err := newServer(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		servers = append(servers, made)
	}
	random := rand.New(rand.NewSource(*seed))
	world := newWorld(random, fmt.Sprintf("compare-%d-%d", *seed, time.Now().Unix()))
	classes := newClasses(*show)
	traced := io.Discard
	if *trace != "" {
		file, err := os.Create(*trace)
		if err != nil {
			return err
		}
		defer file.Close()
		traced = file
	}
	for _, ask := range world.prepare() {
		for _, server := range servers {
			answer := server.ask(ask)
			if answer.code >= 300 {
				return fmt.Errorf("cannot prepare %s %s: %s", ask.method, ask.path, answer.raw)
			}
		}
	}
	for _, server := range servers {
		if err := server.waitFor(world.served()); err != nil {
			return err
		}
	}
	for at := range *count {
		ask := world.next()
		answers := []*answer{servers[0].ask(ask), servers[1].ask(ask)}
		world.learn(ask, answers[0])
		fmt.Fprintf(traced, "%d %s %s %d %d %s\n", at, ask.method, ask.path, answers[0].code, answers[1].code, ask.body)
		different := differences(ask, answers[0], answers[1])
		if len(different) > 0 {
			classes.add(at, ask, answers, different)
		}
		world.startOver(ask, servers, answers, len(different) > 0)
	}
	classes.tell(*count)
	return nil
}

// startOver takes away what would be told again with every later answer: an object that differs, all objects after a
// deletion that did not do the same, and objects under a name of their own.
func (w *world) startOver(ask request, servers []*server, answers []*answer, different bool) {
	if ask.method == http.MethodGet {
		return
	}
	collection, _, _ := strings.Cut(ask.path, "?")
	for at, server := range servers {
		if name := named(answers[at]); ask.method == http.MethodPost && name != "" && collection+"/"+name != ask.object {
			server.remove(collection + "/" + name)
		}
	}
	if !different {
		return
	}
	paths := []string{ask.object}
	if ask.object == "-" {
		paths = nil
		for at := range names {
			paths = append(paths, fmt.Sprintf("%s/o%d", collection, at))
		}
	}
	for _, path := range paths {
		w.forget(path)
		for _, server := range servers {
			server.remove(path)
		}
	}
}

// named is the name of the object in an answer, as the server gave it.
func named(answer *answer) string {
	var object struct {
		Kind     string
		Metadata struct{ Name string }
	}
	if answer.code >= 300 || json.Unmarshal([]byte(answer.raw), &object) != nil || object.Kind == "Status" {
		return ""
	}
	return object.Metadata.Name
}

// A request as both servers get it. `{rv}` in a body stands for the object's own resourceVersion, `{uid}` for its uid.
type request struct {
	class, method, path, contentType string
	body                             string
	object                           string
}

type answer struct {
	code     int
	warnings []string
	raw      string
	body     any
}

type server struct {
	base   string
	client *http.Client
	// What stands for `{rv}` and `{uid}` in requests, by the object's path.
	versions, uids map[string]string
}

func newServer(kubeconfig string) (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Timeout = 30 * time.Second
	return &server{
		base: config.Host, client: client,
		versions: map[string]string{}, uids: map[string]string{},
	}, nil
}

func (s *server) ask(ask request) *answer {
	text := strings.ReplaceAll(ask.body, "{rv}", s.versions[ask.object])
	text = strings.ReplaceAll(text, "{uid}", s.uids[ask.object])
	var body io.Reader
	if text != "" {
		body = bytes.NewReader([]byte(text))
	}
	made, err := http.NewRequest(ask.method, s.base+ask.path, body)
	if err != nil {
		return &answer{raw: err.Error()}
	}
	made.Header.Set("Accept", "application/json")
	made.Header.Set("User-Agent", "compare/1.0")
	if ask.contentType != "" {
		made.Header.Set("Content-Type", ask.contentType)
	}
	got, err := s.client.Do(made)
	if err != nil {
		return &answer{raw: err.Error()}
	}
	defer got.Body.Close()
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		return &answer{raw: err.Error()}
	}
	out := &answer{code: got.StatusCode, warnings: got.Header.Values("Warning"), raw: string(raw)}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&out.body) == nil {
		s.remember(ask, out)
		out.body = s.comparable(out.body, nil)
	}
	return out
}

// remember keeps what later requests for the same object quote.
func (s *server) remember(ask request, answer *answer) {
	object, ok := answer.body.(map[string]any)
	if !ok || answer.code >= 300 || strings.Contains(ask.path, "dryRun") {
		return
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok || metadata["uid"] == nil {
		return
	}
	path := ask.object
	if path == "" {
		return
	}
	s.versions[path], _ = metadata["resourceVersion"].(string)
	s.uids[path], _ = metadata["uid"].(string)
}

func (s *server) waitFor(paths []string) error {
	for _, path := range paths {
		for began := time.Now(); ; {
			if s.ask(request{method: "GET", path: path}).code == http.StatusOK {
				break
			}
			if time.Since(began) > 30*time.Second {
				return fmt.Errorf("%s is not served", path)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// remove takes an object away, finalizers or not.
func (s *server) remove(object string) {
	s.ask(request{
		method: "PATCH", path: object, contentType: "application/merge-patch+json",
		body: `{"metadata":{"finalizers":null}}`,
	})
	s.ask(request{method: "DELETE", path: object, contentType: "application/json", body: `{"gracePeriodSeconds":0}`})
	delete(s.versions, object)
	delete(s.uids, object)
}
