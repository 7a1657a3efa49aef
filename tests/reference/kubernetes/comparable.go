package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// comparable replaces what two servers never share: uids, versions, times, allocated addresses.
func (s *server) comparable(value any, path []string) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range value {
			out[name] = s.comparable(inner, append(slices.Clone(path), name))
		}
		return out
	case []any:
		out := make([]any, len(value))
		for at, inner := range value {
			out[at] = s.comparable(inner, path)
		}
		return out
	case string:
		return s.text(value, path)
	}
	return value
}

var (
	uid       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	stamp     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	serviceIP = regexp.MustCompile(`10\.\d+\.\d+\.\d+`)
)

func (s *server) text(text string, path []string) string {
	last := ""
	if len(path) > 0 {
		last = path[len(path)-1]
	}
	switch last {
	case "resourceVersion", "continue":
		if text != "" {
			return "…"
		}
	}
	text = uid.ReplaceAllString(text, "UID")
	text = stamp.ReplaceAllString(text, "TIME")
	return serviceIP.ReplaceAllString(text, "IP")
}

// differences are the paths where two answers differ, with both values.
func differences(left, right *answer) []string {
	var out []string
	if left.code != right.code {
		return []string{fmt.Sprintf("code: %d %s ≠ %d %s", left.code, message(left), right.code, message(right))}
	}
	if !reflect.DeepEqual(left.warnings, right.warnings) {
		out = append(out, fmt.Sprintf("warnings: %q ≠ %q", left.warnings, right.warnings))
	}
	walk(left.body, right.body, "", &out)
	return out
}

func message(answer *answer) string {
	status, ok := answer.body.(map[string]any)
	if !ok || status["kind"] != "Status" {
		return ""
	}
	return fmt.Sprint(status["message"])
}

func walk(left, right any, path string, out *[]string) {
	if reflect.DeepEqual(left, right) {
		return
	}
	leftMap, leftIs := left.(map[string]any)
	rightMap, rightIs := right.(map[string]any)
	if leftIs && rightIs {
		names := map[string]bool{}
		for name := range leftMap {
			names[name] = true
		}
		for name := range rightMap {
			names[name] = true
		}
		sorted := make([]string, 0, len(names))
		for name := range names {
			sorted = append(sorted, name)
		}
		sort.Strings(sorted)
		for _, name := range sorted {
			walk(leftMap[name], rightMap[name], path+"."+name, out)
		}
		return
	}
	leftList, leftIs := left.([]any)
	rightList, rightIs := right.([]any)
	if leftIs && rightIs && len(leftList) == len(rightList) {
		for at := range leftList {
			walk(leftList[at], rightList[at], path+"[]", out)
		}
		return
	}
	*out = append(*out, fmt.Sprintf("%s: %s ≠ %s", path, short(left), short(right)))
}

func short(value any) string {
	if value == nil {
		return "nothing"
	}
	raw, _ := json.Marshal(value)
	if len(raw) > 300 {
		return string(raw[:300]) + "…"
	}
	return string(raw)
}

// classes count differences that look alike.
type classes struct {
	count    map[string]int
	requests int
}

func newClasses() *classes {
	return &classes{count: map[string]int{}}
}

var particular = regexp.MustCompile(`"[^"]*"|[0-9]+`)

func (c *classes) add(at int, ask request, answers []*answer, different []string) {
	c.requests++
	line, _ := json.Marshal(map[string]any{
		"at": at, "class": ask.class, "method": ask.method, "path": ask.path, "body": ask.body,
		"differences": different, "reference": answers[0].raw, "other": answers[1].raw,
	})
	fmt.Println(string(line))
	kind := ask.class + " " + particular.ReplaceAllString(different[0], "#")
	if len(kind) > 160 {
		kind = kind[:160]
	}
	c.count[kind]++
}

func (c *classes) tell(requests int) {
	names := make([]string, 0, len(c.count))
	for name := range c.count {
		names = append(names, name)
	}
	sort.Slice(names, func(a, b int) bool { return c.count[names[a]] > c.count[names[b]] })
	fmt.Fprintf(os.Stderr, "%d requests, %d answered differently, %d classes\n", requests, c.requests, len(names))
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "%6d %s\n", c.count[name], strings.ReplaceAll(name, "\n", " "))
	}
}
