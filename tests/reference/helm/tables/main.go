// Command tables restates the test tables of Go's text/template and of Sprig as data: their inputs, with what Helm
// answers. Arguments: the folder of text/template, the folder of Sprig, then the answering programs of Helm 3 and 4.
// Rows that need Go's own types are kept with the reason why they are not asked.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// row is one line of the file that the tests read.
type row struct {
	Table string      `json:"table"`
	Text  string      `json:"text"`
	World string      `json:"world,omitempty"`
	Dot   interface{} `json:"dot,omitempty"`
	// Raw says that the text stands alone: what is wrong with it is wrong with the file.
	Raw   bool    `json:"raw,omitempty"`
	Not   string  `json:"not,omitempty"`
	Helm3 *answer `json:"helm3,omitempty"`
	Helm4 *answer `json:"helm4,omitempty"`
}

type answer struct {
	Out   *string `json:"out,omitempty"`
	Error *string `json:"error,omitempty"`
}

// worlds restate the structs of the tests as maps, which is what charts have.
var worlds = map[string]map[string]interface{}{
	"T": {
		"True": true, "I": 17, "U16": 16, "X": "x", "S": "xyz", "FloatZero": 0.0, "U": m{"V": "v"},
		"SI": l{3, 4, 5}, "SICap": l{0, 0, 0, 0, 0}, "SIEmpty": l{}, "SB": l{true, false},
		"AI": l{3, 4, 5}, "PAI": l{3, 4, 5}, "MSI": m{"one": 1, "two": 2, "three": 3}, "MSIone": m{"one": 1},
		"MSIEmpty": m{}, "MXI": m{"one": 1}, "SMSI": l{m{"one": 1, "two": 2}, m{"eleven": 11, "twelve": 12}},
		"Empty0": nil, "Empty1": 3, "Empty2": "empty2", "Empty3": l{7, 8}, "Empty4": m{"V": "UinEmpty"},
		"Str": "foozle", "Err": "erroozle", "PI": 23, "PS": "a string", "PSI": l{21, 22, 23}, "NIL": nil,
	},
	"cmp": {
		"Uthree": 3, "Ufour": 4, "NegOne": -1, "Three": 3, "Ptr": 0, "NilPtr": nil, "NonNilMap": m{}, "Map": nil,
	},
}

type m = map[string]interface{}
type l = []interface{}

// reasons are why a text is not asked, first match first.
var reasons = []struct {
	why  string
	text *regexp.Regexp
}{
	{"complex numbers", regexp.MustCompile(`[0-9]i\b|ComplexZero`)},
	{"methods, functions and pointers of a Go type", regexp.MustCompile(
		`\b(Method[0-9]|GetU|MAdd|MyError|Copy|BinaryFunc|Variadic\w*|NilOKFunc|ErrFunc|PanicFunc|\w*FuncCount\w*|` +
			`NonEmptyInterface\w*|Tmpl|UPI|EmptyUPI|unexported|Iface1|NilIface)\b|\.[VW][0-2]\b`)},
	{"maps with keys that are no strings", regexp.MustCompile(`\b(MII|MI[0-9]+S|MUI[0-9]+S)\b`)},
	{"functions that only the test has", regexp.MustCompile(
		`\b(count|makemap|echo|vfunc|zeroArgs|oneArg|twoArgs|dddArg|mapOfThree|valueString|returnInt|stringer|die|panics)\b`)},
	{"the clock, chance, the network or the process", regexp.MustCompile(
		`\b(now|ago|rand\w*|gen[A-Z]\w*|uuidv4|shuffle|bcrypt|htpasswd|encryptAES|getHostByName|env|expandenv|` +
			`buildCustomCert|htmlDate|date "[^"]*" *}}|duration_round|Time)\b`)},
}

// address is where a pointer points to, as Go prints it.
var address = regexp.MustCompile(`:0x[0-9a-f]{6,}`)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: tables TEXT/TEMPLATE SPRIG HELM3 HELM4")
		os.Exit(2)
	}
	rows := goTables(os.Args[1])
	rows = append(rows, sprigTables(os.Args[2])...)
	seen := map[string]bool{}
	kept := rows[:0]
	for _, r := range rows {
		key := fmt.Sprint(r.Table, r.Text, r.World, r.Dot)
		if !seen[key] && utf8.ValidString(r.Text) {
			seen[key] = true
			kept = append(kept, r)
		}
	}
	rows = kept
	for i := range rows {
		for _, reason := range reasons {
			if rows[i].Not == "" && reason.text.MatchString(rows[i].Text) {
				rows[i].Not = reason.why
			}
		}
	}
	three, four := ask(os.Args[3], rows), ask(os.Args[4], rows)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	write(out, m{"worlds": worlds})
	for i, r := range rows {
		if r.Not == "" {
			r.Helm3, r.Helm4 = three[i], four[i]
			if r.Helm3 == nil || r.Helm4 == nil {
				r.Not, r.Helm3, r.Helm4 = "Helm answers differently from run to run", nil, nil
			} else if r.Helm3.Out != nil && address.MatchString(*r.Helm3.Out) {
				r.Not, r.Helm3, r.Helm4 = "an address in Helm's memory", nil, nil
			}
		}
		write(out, r)
	}
}

func write(out *bufio.Writer, value interface{}) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err)
	}
	out.Write(text.Bytes())
}

// template is the text of the file that Helm renders for a row.
func template(r row) string {
	if r.Raw {
		return r.Text
	}
	return `{{define "case"}}` + r.Text + `{{end}}{{template "case" .Values.dot}}`
}

func ask(program string, rows []row) []*answer {
	var cases bytes.Buffer
	for _, r := range rows {
		dot := r.Dot
		if r.World != "" {
			dot = worlds[r.World]
		}
		values, _ := json.Marshal(m{"dot": dot})
		line, _ := json.Marshal(m{"files": m{"templates/NOTES.txt": template(r)}, "values": string(values)})
		cases.Write(append(line, '\n'))
	}
	command := exec.Command(program)
	command.Stdin, command.Env = &cases, append(os.Environ(), "TZ=UTC")
	output, err := command.Output()
	if err != nil {
		panic(err)
	}
	var answers []*answer
	for _, line := range bytes.Split(bytes.TrimSpace(output), []byte("\n")) {
		var said struct {
			Out             map[string]string
			Error           string
			Unstable, Crash bool
		}
		if err := json.Unmarshal(line, &said); err != nil {
			panic(err)
		}
		text, err := hex.DecodeString(said.Out["probe/templates/NOTES.txt"])
		switch {
		case said.Unstable || said.Crash || err != nil || !utf8.Valid(text):
			answers = append(answers, nil)
		case said.Error != "":
			answers = append(answers, &answer{Error: &said.Error})
		default:
			out := string(text)
			answers = append(answers, &answer{Out: &out})
		}
	}
	return answers
}

// source is a parsed folder of tests, with the texts that have a name.
type source struct {
	files []*ast.File
	named map[string]string
}

func load(folder string) source {
	names, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	loaded := source{named: map[string]string{
		"bigInt": "0x7fffffffffffffff", "bigUint": "0x8000000000000000",
	}}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			panic(err)
		}
		loaded.files = append(loaded.files, file)
	}
	loaded.each(func(node ast.Node) {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				if text, ok := loaded.text(spec.Values[i]); ok {
					loaded.named[name.Name] = text
				}
			}
		}
	})
	return loaded
}

func (s source) each(visit func(ast.Node)) {
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			if node != nil {
				visit(node)
			}
			return true
		})
	}
}

// text evaluates texts that are put together of literals.
func (s source) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, err := strconv.Unquote(e.Value)
			return text, err == nil
		}
	case *ast.Ident:
		text, ok := s.named[e.Name]
		return text, ok
	case *ast.ParenExpr:
		return s.text(e.X)
	case *ast.BinaryExpr:
		left, ok := s.text(e.X)
		right, also := s.text(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// value evaluates data as far as it is plain.
func (s source) value(e ast.Expr) (interface{}, bool) {
	if text, ok := s.text(e); ok {
		return text, true
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		number, err := strconv.ParseFloat(e.Value, 64)
		return number, err == nil
	case *ast.UnaryExpr:
		number, ok := s.value(e.X)
		if float, is := number.(float64); ok && is && e.Op == token.SUB {
			return -float, true
		}
	case *ast.Ident:
		switch e.Name {
		case "nil":
			return nil, true
		case "true", "false":
			return e.Name == "true", true
		}
	case *ast.CompositeLit:
		switch e.Type.(type) {
		case *ast.MapType:
			entries := m{}
			for _, element := range e.Elts {
				pair := element.(*ast.KeyValueExpr)
				key, ok := s.text(pair.Key)
				value, also := s.value(pair.Value)
				if !ok || !also {
					return nil, false
				}
				entries[key] = value
			}
			return entries, true
		case *ast.ArrayType:
			items := l{}
			for _, element := range e.Elts {
				value, ok := s.value(element)
				if !ok {
					return nil, false
				}
				items = append(items, value)
			}
			return items, true
		}
	}
	return nil, false
}

// goTables reads the tables of text/template by their names.
func goTables(folder string) []row {
	tables := []struct {
		folder, name, as string
		text, data       int
		raw              bool
	}{
		{folder, "execTests", "exec", 1, 3, false},
		{folder, "cmpTests", "comparison", 0, -1, false},
		{filepath.Join(folder, "parse"), "parseTests", "parse", 1, -1, true},
		{filepath.Join(folder, "parse"), "errorTests", "parse errors", 1, -1, true},
		{filepath.Join(folder, "parse"), "isEmptyTests", "empty", 1, -1, true},
		{filepath.Join(folder, "parse"), "lexTests", "lex", 1, -1, true},
		{filepath.Join(folder, "parse"), "numberTests", "number", 0, -1, false},
	}
	var rows []row
	for _, table := range tables {
		tests := load(table.folder)
		tests.each(func(node ast.Node) {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != table.name || len(spec.Values) == 0 {
				return
			}
			for _, element := range spec.Values[0].(*ast.CompositeLit).Elts {
				fields := element.(*ast.CompositeLit).Elts
				text, ok := tests.text(fields[table.text])
				if !ok {
					continue
				}
				r := row{Table: table.as, Text: text, Raw: table.raw}
				switch table.as {
				case "comparison":
					r.Text, r.World = "{{if "+text+"}}true{{else}}false{{end}}", "cmp"
				case "number":
					r.Text = "{{printf `%T %v` " + text + " " + text + "}}"
				}
				if table.data >= 0 {
					r.World, r.Dot, r.Not = tests.data(fields[table.data])
				}
				rows = append(rows, r)
			}
		})
	}
	return rows
}

func (s source) data(e ast.Expr) (world string, dot interface{}, not string) {
	if name, ok := e.(*ast.Ident); ok && name.Name == "tVal" {
		return "T", nil, ""
	}
	value, ok := s.value(e)
	if !ok {
		return "", nil, "iterators, channels and other data of a Go type"
	}
	return "", value, ""
}

// sprigTables takes every template of Sprig's tests, with its data where that is plain.
func sprigTables(folder string) []row {
	tests := load(folder)
	var rows []row
	with := map[string]interface{}{}
	refused := map[string]bool{}
	tests.each(func(node ast.Node) {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return
		}
		name, _ := call.Fun.(*ast.Ident)
		at := map[string]int{"runtv": 2, "runRaw": 1}
		if name == nil || at[name.Name] == 0 || len(call.Args) <= at[name.Name] {
			return
		}
		text, ok := tests.text(call.Args[0])
		if !ok {
			return
		}
		if value, ok := tests.value(call.Args[at[name.Name]]); ok {
			with[text] = value
		} else {
			refused[text] = true
		}
	})
	tests.each(func(node ast.Node) {
		literal, ok := node.(*ast.BasicLit)
		if !ok {
			return
		}
		if text, ok := tests.text(literal); ok && strings.Contains(text, "{{") {
			r := row{Table: "sprig", Text: text, Dot: with[text]}
			if refused[text] && with[text] == nil {
				r.Not = "iterators, channels and other data of a Go type"
			}
			rows = append(rows, r)
		}
	})
	return rows
}
