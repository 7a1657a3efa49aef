package main

import (
	"encoding/json"
	"regexp"
	"slices"
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
		if len(path) > 0 && path[len(path)-1] == "managedFields" {
			slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(entry(a), entry(b)) })
		}
		return out
	case string:
		return s.text(value, path)
	case json.Number:
		// Allocated, unless somebody asked for a port that is out of range. Of a dry run it may be beyond the range.
		if number, _ := value.Int64(); len(path) > 0 && strings.HasSuffix(path[len(path)-1], "odePort") && number >= 30000 && number < 33000 {
			return "PORT"
		}
	}
	return value
}

// entry names a record of managedFields. Records are ordered by time in whole seconds, and each server has its own.
func entry(value any) string {
	record, _ := value.(map[string]any)
	name := ""
	for _, field := range []string{"manager", "operation", "subresource", "apiVersion"} {
		text, _ := record[field].(string)
		name += text + "/"
	}
	return name
}

var (
	uid       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	stamp     = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	serviceIP = regexp.MustCompile(`10\.\d+\.\d+\.\d+`)
	generated = regexp.MustCompile(`gen-[bcdfghjklmnpqrstvwxz2456789]{5}`)
	patched   = regexp.MustCompile(`Invalid value: "(\\"|\{)(?:[^"\\]|\\.)*":`)
	immutable = regexp.MustCompile(`Invalid value: \{.*\}: field is immutable`)
	structs   = regexp.MustCompile(`pod updates may not change|spec is immutable after creation`)
	// The first wrong field is told, and Go's maps have no order.
	typed    = regexp.MustCompile(`(failed to create typed patch object \([^)]*\)): [\s\S]*`)
	nodePort = regexp.MustCompile(`Duplicate value: 3[0-2]\d{3}\b`)
	inRecord = regexp.MustCompile(`in record \(\d+\)`)
	// A whole object inside of a text.
	inText = regexp.MustCompile(`"resourceVersion\\*":\\*"\d+`)
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
	// Objects are printed with their fields in another order.
	text = patched.ReplaceAllString(text, "Invalid value: …:")
	text = immutable.ReplaceAllString(text, "Invalid value: {…}: field is immutable")
	// What follows is a listing of Go structs.
	if at := strings.Index(text, "\n"); at >= 0 && structs.MatchString(text) {
		text = text[:at]
	}
	text = typed.ReplaceAllString(text, "$1: …")
	text = nodePort.ReplaceAllString(text, "Duplicate value: PORT")
	text = generated.ReplaceAllString(text, "gen-…")
	text = inRecord.ReplaceAllString(text, "in record (…)")
	text = inText.ReplaceAllString(text, `"resourceVersion":"…`)
	return serviceIP.ReplaceAllString(text, "IP")
}
