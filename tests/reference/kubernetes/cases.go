package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"net/http"
	"os"
	"strings"
)

// cases: random objects that a real server refuses or warns of, each with its answer, one JSON line each: what the
// embedded control plane's own tests check without a server. Only what says something new is printed.
func cases() error {
	flags := flag.NewFlagSet("cases", flag.ContinueOnError)
	seed := flags.Int64("seed", 1, "where the random objects start")
	count := flags.Int("objects", 5000, "how many are tried")
	reference := flags.String("reference", "", "kubeconfig of the real server")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	server, err := newServer(*reference)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewSource(*seed))
	world := newWorld(random, "default")
	server.ask(world.prepare()[1])
	seen := map[string]bool{}
	for range *count {
		kind := world.pick()
		if strings.Contains(kind.apiVersion, "example.com") {
			continue
		}
		ask := request{
			class: kind.plural + " create", method: http.MethodPost, contentType: "application/json",
			path: kind.collection(world.namespace) + "?dryRun=All", body: text(world.object(kind, "o")),
		}
		answer := server.ask(ask)
		if answer.code != http.StatusCreated && answer.code != http.StatusUnprocessableEntity {
			continue
		}
		found := causes(status(answer))
		compared := &comparison{kind: kind.plural}
		fresh := false
		classes := []string{}
		for _, cause := range found {
			classes = append(classes, compared.cause(cause))
		}
		for _, header := range answer.warnings {
			classes = append(classes, "warning "+warning(header))
		}
		for _, class := range classes {
			fresh = fresh || !seen[class]
			seen[class] = true
		}
		// Allocated ports and addresses are never the same.
		if !fresh || len(found) > 6 || strings.Contains(answer.raw, "nodePort: Duplicate") || strings.Contains(answer.raw, "valid IP") {
			continue
		}
		line, err := json.Marshal(map[string]any{
			"path": ask.path, "object": json.RawMessage(ask.body), "code": answer.code,
			"causes": settled(kind.plural, found), "warnings": answer.warnings,
		})
		if err != nil {
			return err
		}
		fmt.Println(string(line))
	}
	return nil
}
