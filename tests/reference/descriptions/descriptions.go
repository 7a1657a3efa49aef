// Writes src/object/assets/descriptions.tsv.gz: what the Go types of Kubernetes and its API say about each definition and
// its fields.
//
//	go run tests/reference/descriptions/descriptions.go v1.36.0
//
// Two sources are read, both through `go mod download`: the comments of the Go types, line by line without markers, and
// swagger.json, which Kubernetes records from a running kube-apiserver at each release. A line of the output is
//
//	DEFINITION TAB PATH TAB COMMENT [TAB -]
//
// PATH is empty for the definition itself, else a field, `field[]` for the items of a list and `field.*` for the values of a
// map. COMMENT is a JSON text. What the API says follows from it, which is checked for all; `-` marks what the API does not
// say. The output is the same for the same input.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
)

const assets = "src/object/assets"

// named is a type of a package, with the file it stands in.
type named struct {
	pkg     string
	spec    *ast.TypeSpec
	doc     *ast.CommentGroup
	imports map[string]string
}

type source struct {
	modules  map[string]string
	packages map[string]map[string]*named
}

type line struct{ definition, path, comment string }

func main() {
	release := os.Args[1]
	staging := "v0" + strings.TrimPrefix(release, "v1")
	src := source{modules: map[string]string{}, packages: map[string]map[string]*named{}}
	for _, name := range []string{"api", "apimachinery", "apiextensions-apiserver", "kube-aggregator"} {
		src.modules["k8s.io/"+name] = download("k8s.io/"+name, staging)
	}
	served := definitions()
	said := swagger(filepath.Join(download("k8s.io/kubernetes", release), "api/openapi-spec/swagger.json"))
	lines := map[[2]string]string{}
	for name := range served {
		if pkg, ty, ok := goName(name); ok {
			src.definition(name, src.find(pkg, ty), served, lines)
		}
	}
	// Types with a name that the API has no definition of.
	for _, pkg := range append(keys(src.packages), "k8s.io/apimachinery/pkg/types") {
		for ty, of := range src.load(pkg) {
			_, isStruct := of.spec.Type.(*ast.StructType)
			if name := apiName(pkg, ty); !served[name] && ast.IsExported(ty) && (!isStruct || ty == "TypeMeta") {
				src.definition(name, of, served, lines)
			}
		}
	}
	write(lines, said, served)
}

// write holds what the comments say against what the API says, and keeps it.
func write(lines map[[2]string]string, said map[[2]string]string, served map[string]bool) {
	all := map[[2]string]bool{}
	for key := range lines {
		all[key] = true
	}
	for key := range said {
		if served[key[0]] {
			all[key] = true
		}
	}
	order := make([][2]string, 0, len(all))
	for key := range all {
		order = append(order, key)
	}
	sort.Slice(order, func(a, b int) bool {
		return order[a][0] < order[b][0] || order[a][0] == order[b][0] && order[a][1] < order[b][1]
	})
	var out bytes.Buffer
	silent := 0
	for _, key := range order {
		fmt.Fprintf(&out, "%s\t%s\t%s", key[0], key[1], quoted(lines[key]))
		switch text := said[key]; text {
		case spoken(lines[key]):
		case "":
			silent++
			out.WriteString("\t-")
		default:
			check(fmt.Errorf("%s %s: the API says %q, the comment %q", key[0], key[1], text, lines[key]))
		}
		out.WriteByte('\n')
	}
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	must(zip.Write(out.Bytes()))
	check(zip.Close())
	check(os.WriteFile(filepath.Join(assets, "descriptions.tsv.gz"), packed.Bytes(), 0o644))
	fmt.Printf("%d descriptions, %d of which the API does not say, %d bytes\n", len(order), silent, packed.Len())
}

// spoken is what the API makes of a comment.
func spoken(comment string) string {
	var out bytes.Buffer
	back := func() { out.Truncate(max(out.Len()-1, 0)) }
	for _, line := range strings.Split(comment, "\n") {
		line = strings.TrimRight(line, " ")
		switch {
		case line == "---":
			return strings.TrimSpace(out.String())
		case line == "":
			back()
			out.WriteString("\n\n")
		case strings.HasPrefix(strings.TrimLeft(line, " "), "TODO"):
		case line[0] == ' ' || line[0] == '\t':
			back()
			out.WriteString("\n" + line + "\n")
		default:
			out.WriteString(line + " ")
		}
	}
	return strings.TrimSpace(out.String())
}

// definition notes what is said of a type and its fields.
func (s *source) definition(name string, of *named, served map[string]bool, lines map[[2]string]string) {
	if of == nil {
		return
	}
	note := func(path, comment string) {
		if comment != "" {
			lines[[2]string{name, path}] = comment
		}
	}
	note("", comment(of.doc))
	if fields, ok := of.spec.Type.(*ast.StructType); ok {
		s.fields(of, fields, served, note)
	}
}

func (s *source) fields(of *named, fields *ast.StructType, served map[string]bool, note func(path, comment string)) {
	for _, field := range fields.Fields.List {
		tag := ""
		if field.Tag != nil {
			tag = reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "-" {
			continue
		}
		if name == "" && (len(field.Names) == 0 || strings.Contains(options, "inline")) {
			if inner := s.resolve(of, field.Type); inner != nil {
				if below, ok := inner.spec.Type.(*ast.StructType); ok {
					s.fields(inner, below, served, note)
				}
			}
			continue
		}
		if name != "" {
			s.value(of, name, field.Type, comment(field.Doc), served, note)
		}
	}
}

// value notes what is said of a value of a type, and of what is in it.
func (s *source) value(of *named, path string, ty ast.Expr, about string, served map[string]bool, note func(path, comment string)) {
	switch ty := ty.(type) {
	case *ast.StarExpr:
		s.value(of, path, ty.X, about, served, note)
	case *ast.ArrayType:
		note(path, about)
		s.value(of, path+"[]", ty.Elt, "", served, note)
	case *ast.MapType:
		note(path, about)
		s.value(of, path+".*", ty.Value, "", served, note)
	default:
		inner := s.resolve(of, ty)
		if inner == nil || served[apiName(inner.pkg, inner.spec.Name.Name)] {
			note(path, about)
			return
		}
		if _, ok := inner.spec.Type.(*ast.StructType); ok {
			note(path, about)
			return
		}
		if about == "" {
			about = comment(inner.doc)
		}
		s.value(inner, path, inner.spec.Type, about, served, note)
	}
}

// resolve finds the named type that an expression means; nil for one of Go's own.
func (s *source) resolve(of *named, ty ast.Expr) *named {
	switch ty := ty.(type) {
	case *ast.StarExpr:
		return s.resolve(of, ty.X)
	case *ast.Ident:
		return s.find(of.pkg, ty.Name)
	case *ast.SelectorExpr:
		return s.find(of.imports[ty.X.(*ast.Ident).Name], ty.Sel.Name)
	}
	return nil
}

func (s *source) find(pkg, ty string) *named { return s.load(pkg)[ty] }

func (s *source) load(pkg string) map[string]*named {
	if known, ok := s.packages[pkg]; ok {
		return known
	}
	types := map[string]*named{}
	parts := strings.Split(pkg, "/")
	root, ok := s.modules[strings.Join(parts[:min(2, len(parts))], "/")]
	if !ok {
		return types
	}
	s.packages[pkg] = types
	files, _ := filepath.Glob(filepath.Join(append([]string{root}, append(parts[2:], "*.go")...)...))
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file := must(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments))
		imports := map[string]string{}
		for _, one := range file.Imports {
			path := strings.Trim(one.Path.Value, `"`)
			name := path[strings.LastIndex(path, "/")+1:]
			if one.Name != nil {
				name = one.Name.Name
			}
			imports[name] = path
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				spec := spec.(*ast.TypeSpec)
				doc := spec.Doc
				if doc == nil && !group.Lparen.IsValid() {
					doc = group.Doc
				}
				types[spec.Name.Name] = &named{pkg, spec, doc, imports}
			}
		}
	}
	return types
}

// comment is the text of a comment without its markers.
func comment(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	kept := &ast.CommentGroup{}
	for _, one := range group.List {
		rest, isLine := strings.CutPrefix(one.Text, "//")
		if !isLine || !strings.HasPrefix(strings.TrimSpace(rest), "+") {
			kept.List = append(kept.List, one)
		}
	}
	return strings.TrimRight(kept.Text(), "\n")
}

func apiName(pkg, ty string) string {
	return "io.k8s." + strings.ReplaceAll(strings.TrimPrefix(pkg, "k8s.io/"), "/", ".") + "." + ty
}

func goName(definition string) (pkg, ty string, ok bool) {
	rest, ok := strings.CutPrefix(definition, "io.k8s.")
	at := strings.LastIndex(rest, ".")
	if !ok || at < 0 {
		return "", "", false
	}
	return "k8s.io/" + strings.ReplaceAll(rest[:at], ".", "/"), rest[at+1:], true
}

// definitions are the names of those that the facts have.
func definitions() map[string]bool {
	file := must(os.Open(filepath.Join(assets, "schemas.tsv.gz")))
	text := string(must(io.ReadAll(must(gzip.NewReader(file)))))
	names := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, _, _ := strings.Cut(line, "\t")
		names[name] = true
	}
	return names
}

// swagger has what the API says, by definition and field.
func swagger(path string) map[[2]string]string {
	var document struct {
		Definitions map[string]struct {
			Description string
			Properties  map[string]struct{ Description string }
		}
	}
	check(json.Unmarshal(must(os.ReadFile(path)), &document))
	said := map[[2]string]string{}
	for name, definition := range document.Definitions {
		said[[2]string{name, ""}] = definition.Description
		for field, about := range definition.Properties {
			said[[2]string{name, field}] = about.Description
		}
	}
	for key, text := range said {
		if text == "" {
			delete(said, key)
		}
	}
	return said
}

func download(module, version string) string {
	out := must(exec.Command("go", "mod", "download", "-json", module+"@"+version).Output())
	var found struct{ Dir string }
	check(json.Unmarshal(out, &found))
	return found.Dir
}

func quoted(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check(encoder.Encode(text))
	return strings.TrimSuffix(out.String(), "\n")
}

func keys(of map[string]map[string]*named) []string {
	var names []string
	for name := range of {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
