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

// A difference between two answers: a class that many share, and what is particular.
type difference struct {
	Class string `json:"class"`
	Text  string `json:"text"`
}

// comparison collects the differences of one pair of answers.
type comparison struct {
	kind  string
	found []difference
}

// differences between two answers to the same request; a missing cause is named, not counted.
func differences(ask request, left, right *answer) []difference {
	kind, _, _ := strings.Cut(ask.class, " ")
	out := &comparison{kind: kind}
	leftStatus, rightStatus := status(left), status(right)
	switch {
	case left.code != right.code && (len(causes(leftStatus)) > 0 || len(causes(rightStatus)) > 0):
		out.codes(left, right, leftStatus, rightStatus)
		out.causes(settled(kind, causes(leftStatus)), settled(kind, causes(rightStatus)))
	case left.code != right.code:
		out.add(fmt.Sprintf("%s: code %d, not %d: %s ≠ %s", ask.class, left.code, right.code, general(message(leftStatus)), general(message(rightStatus))),
			"%s ≠ %s", message(leftStatus), message(rightStatus))
	case leftStatus != nil && rightStatus != nil:
		out.statuses(ask.class, leftStatus, rightStatus)
	default:
		out.walk(left.body, right.body, "")
	}
	if !reflect.DeepEqual(left.warnings, right.warnings) {
		out.warnings(left.warnings, right.warnings)
	}
	return out.found
}

func (c *comparison) add(class, format string, values ...any) {
	c.found = append(c.found, difference{Class: class, Text: fmt.Sprintf(format, values...)})
}

func status(answer *answer) map[string]any {
	body, _ := answer.body.(map[string]any)
	if body["kind"] != "Status" {
		return nil
	}
	return body
}

func message(status map[string]any) string {
	text, _ := status["message"].(string)
	return text
}

func causes(status map[string]any) []any {
	details, _ := status["details"].(map[string]any)
	list, _ := details["causes"].([]any)
	return list
}

// codes tells of a refusal that the other side does not share; its causes are told apart.
func (c *comparison) codes(left, right *answer, leftStatus, rightStatus map[string]any) {
	text := fmt.Sprintf("code %d %s ≠ %d %s", left.code, message(leftStatus), right.code, message(rightStatus))
	if left.code >= 300 && right.code >= 300 {
		c.add(fmt.Sprintf("%s: code %d, not %d: %s", c.kind, left.code, right.code, general(message(rightStatus))), "%s", text)
	}
}

// causes tells which causes only one side has, and otherwise whether they stand in another order.
func (c *comparison) causes(left, right []any) {
	missing, extra := without(left, right), without(right, left)
	for _, cause := range missing {
		c.add("cause missing: "+c.cause(cause), "%s", short(cause))
	}
	for _, cause := range extra {
		c.add("cause too many: "+c.cause(cause), "%s", short(cause))
	}
	if len(missing)+len(extra) > 0 {
		return
	}
	for at := range left {
		if at < len(right) && !reflect.DeepEqual(left[at], right[at]) {
			c.add("cause order: "+c.cause(left[at])+" before "+c.cause(right[at]), "%s ≠ %s", short(left), short(right))
			return
		}
	}
}

// settled are causes in an order that does not hang on the order of Go's maps: those about one field, and conflicts
// with several managers, come in any; so do the fields of a custom resource.
func settled(kind string, causes []any) []any {
	text := func(value any, name string) string {
		cause, _ := value.(map[string]any)
		found, _ := cause[name].(string)
		return found
	}
	out := slices.Clone(causes)
	if kind == "widgets" {
		slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(text(a, "field"), text(b, "field")) })
	}
	group := func(value any) string {
		field := text(value, "field")
		if at := strings.Index(field, ".resources."); at >= 0 {
			return field[:at]
		}
		return field
	}
	for from := 0; from < len(out); {
		to := from + 1
		conflict := text(out[from], "reason") == "FieldManagerConflict"
		for to < len(out) && (group(out[to]) == group(out[from]) || conflict && text(out[to], "reason") == "FieldManagerConflict") {
			to++
		}
		slices.SortStableFunc(out[from:to], func(a, b any) int { return strings.Compare(text(a, "message"), text(b, "message")) })
		from = to
	}
	return out
}

// without is what of `from` is not in `other`, repetitions counted.
func without(from, other []any) []any {
	other = slices.Clone(other)
	var out []any
	for _, item := range from {
		at := slices.IndexFunc(other, func(known any) bool { return reflect.DeepEqual(known, item) })
		if at < 0 {
			out = append(out, item)
		} else {
			other = slices.Delete(other, at, at+1)
		}
	}
	return out
}

var podPath = regexp.MustCompile(`^spec\.(jobTemplate\.spec\.)?template\.spec\b`)

func (c *comparison) cause(value any) string {
	cause, _ := value.(map[string]any)
	field, _ := cause["field"].(string)
	text, _ := cause["message"].(string)
	kind := c.kind
	if podPath.MatchString(field) {
		kind, field = "pods", podPath.ReplaceAllString(field, "spec")
	} else if strings.HasPrefix(field, "metadata") {
		kind = "*"
	}
	field = strings.Replace(position.ReplaceAllString(field, "[]"), "initContainers", "containers", 1)
	return kind + " " + field + ": " + general(text)
}

func (c *comparison) statuses(class string, left, right map[string]any) {
	for _, field := range []string{"reason", "code", "status", "metadata"} {
		if !reflect.DeepEqual(left[field], right[field]) {
			c.add(fmt.Sprintf("%s: Status.%s %s ≠ %s", class, field, short(left[field]), short(right[field])), "%s", message(left))
		}
	}
	leftCauses, rightCauses := settled(c.kind, causes(left)), settled(c.kind, causes(right))
	c.causes(leftCauses, rightCauses)
	leftDetails, _ := left["details"].(map[string]any)
	rightDetails, _ := right["details"].(map[string]any)
	if (leftDetails == nil) != (rightDetails == nil) {
		c.add("Status.details "+short(left["details"])+" ≠ "+short(right["details"]), "%s", message(left))
	}
	for _, field := range []string{"name", "kind", "group", "uid", "retryAfterSeconds"} {
		if !reflect.DeepEqual(leftDetails[field], rightDetails[field]) {
			c.add(fmt.Sprintf("Status.details.%s: %s", field, general(message(left))), "%s ≠ %s", short(leftDetails[field]), short(rightDetails[field]))
		}
	}
	// A message that lists the causes differs with them.
	if len(c.found) == 0 && len(leftCauses) < 2 && message(left) != message(right) {
		c.add("message: "+general(message(left))+" ≠ "+general(message(right)), "%s ≠ %s", message(left), message(right))
	}
}

func (c *comparison) warnings(left, right []string) {
	asAny := func(texts []string) []any {
		out := make([]any, len(texts))
		for at, text := range texts {
			out[at] = text
		}
		return out
	}
	missing, extra := without(asAny(left), asAny(right)), without(asAny(right), asAny(left))
	for _, text := range missing {
		c.add("warning missing: "+warning(text), "%s", text)
	}
	for _, text := range extra {
		c.add("warning too many: "+warning(text), "%s", text)
	}
	if len(missing)+len(extra) == 0 {
		c.add("warnings in another order", "%q ≠ %q", left, right)
	}
}

// warning is a Warning header's text, without what is particular.
func warning(header any) string {
	text := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(header), `299 - "`), `"`)
	return general(strings.ReplaceAll(position.ReplaceAllString(text, "[]"), `\"`, `"`))
}

// walk compares objects: fields that only one side has are told by their name.
func (c *comparison) walk(left, right any, path string) {
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
		for _, name := range sortedNames(names) {
			c.field(leftMap, rightMap, name, path+"."+name)
		}
		return
	}
	leftList, leftIs := left.([]any)
	rightList, rightIs := right.([]any)
	if leftIs && rightIs {
		for at := range min(len(leftList), len(rightList)) {
			c.walk(leftList[at], rightList[at], path+"[]")
		}
		if len(leftList) != len(rightList) {
			c.add(c.place(path)+": another number of items", "%s ≠ %s", short(left), short(right))
		}
		return
	}
	c.add(c.place(path)+" differs", "%s ≠ %s", short(left), short(right))
}

func (c *comparison) field(left, right map[string]any, name, path string) {
	leftValue, inLeft := left[name]
	rightValue, inRight := right[name]
	switch {
	case inLeft && inRight:
		c.walk(leftValue, rightValue, path)
	case inLeft:
		c.add(c.place(path)+" missing", "%s", short(leftValue))
	default:
		c.add(c.place(path)+" too many", "%s", short(rightValue))
	}
}

func (c *comparison) place(path string) string {
	path = strings.TrimPrefix(path, ".items[]")
	if at := strings.Index(path, ".fieldsV1"); at >= 0 {
		return c.kind + " managedFields" + particular.ReplaceAllString(path[at:], "#")
	}
	for _, prefix := range []string{".spec.jobTemplate.spec.template.spec", ".spec.template.spec"} {
		if strings.HasPrefix(path, prefix) {
			return "pods .spec" + strings.TrimPrefix(path, prefix)
		}
	}
	return c.kind + " " + path
}

func sortedNames(names map[string]bool) []string {
	out := make([]string, 0, len(names))
	for name := range names {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

func short(value any) string {
	if value == nil {
		return "nothing"
	}
	raw, _ := json.Marshal(value)
	if len(raw) > 400 {
		return string(raw[:400]) + "…"
	}
	return string(raw)
}

var (
	particular = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^' ]*'|\b[0-9]+\b`)
	position   = regexp.MustCompile(`\[[0-9]+\]`)
	inBraces   = regexp.MustCompile(`\{.*\}`)
	objectName = regexp.MustCompile(`\bo[0-4]\b`)
	ownName    = regexp.MustCompile(`compare-\d+-\d+`)
)

// general is a text without what is particular to one request.
func general(text string) string {
	text = ownName.ReplaceAllString(text, "NS")
	text = inBraces.ReplaceAllString(text, "{…}")
	text = particular.ReplaceAllString(text, "#")
	text = objectName.ReplaceAllString(text, "on")
	if len(text) > 150 {
		text = text[:150] + "…"
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// classes count differences that look alike.
type classes struct {
	count    map[string]int
	examples map[string][]string
	show     string
	requests int
}

func newClasses(show string) *classes {
	return &classes{count: map[string]int{}, examples: map[string][]string{}, show: show}
}

func (c *classes) add(at int, ask request, answers []*answer, different []difference) {
	c.requests++
	line, _ := json.Marshal(map[string]any{
		"at": at, "class": ask.class, "method": ask.method, "path": ask.path, "body": ask.body,
		"differences": different, "reference": answers[0].raw, "other": answers[1].raw,
	})
	fmt.Println(string(line))
	counted := map[string]bool{}
	for _, one := range different {
		if counted[one.Class] {
			continue
		}
		counted[one.Class] = true
		c.count[one.Class]++
		if c.show != "" && strings.Contains(one.Class, c.show) && len(c.examples[one.Class]) < 2 {
			c.examples[one.Class] = append(c.examples[one.Class], fmt.Sprintf("  %s %s\n    body      %s\n    differs   %s\n    reference %d %s\n    other     %d %s\n",
				ask.method, ask.path, ask.body, one.Text, answers[0].code, strings.TrimSpace(answers[0].raw), answers[1].code, strings.TrimSpace(answers[1].raw)))
		}
	}
}

func (c *classes) tell(requests int) {
	names := make([]string, 0, len(c.count))
	for name := range c.count {
		names = append(names, name)
	}
	sort.Slice(names, func(a, b int) bool {
		if c.count[names[a]] != c.count[names[b]] {
			return c.count[names[a]] > c.count[names[b]]
		}
		return names[a] < names[b]
	})
	fmt.Fprintf(os.Stderr, "%d requests, %d answered differently, %d classes\n", requests, c.requests, len(names))
	for _, name := range names {
		fmt.Fprintf(os.Stderr, "%6d %s\n", c.count[name], name)
		for _, example := range c.examples[name] {
			fmt.Fprint(os.Stderr, example)
		}
	}
}
