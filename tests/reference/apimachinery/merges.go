package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"
)

// deep is how often a type that holds itself is unrolled.
const deep = 6

// operation is one request of a case, with what it left behind.
type operation struct {
	Do      string `json:"do"`
	Manager string `json:"manager"`
	Version string `json:"version"`
	Object  any    `json:"object"`
	// Schema is the one from here on, where it changes.
	Schema string `json:"schema,omitempty"`
	// Error is the refusal; else the object and its managers follow.
	Error    string           `json:"error,omitempty"`
	Left     any              `json:"left,omitempty"`
	Managers []map[string]any `json:"managers,omitempty"`
}

type sequence struct {
	Name   string      `json:"name"`
	Schema string      `json:"schema"`
	Ops    []operation `json:"ops"`
}

// schemas are the names of all that the objects go by.
func (one *sequence) schemas() []string {
	names := []string{one.Schema}
	for _, op := range one.Ops {
		if op.Schema != "" {
			names = append(names, op.Schema)
		}
	}
	return names
}

// merges prints the sequences of operations in the tests of structured-merge-diff, each on an object of a custom
// resource, with what the API server's field manager makes of them. What is left out is said on standard error.
func merges(module string) error {
	paths, err := filepath.Glob(filepath.Join(module, "merge", "*_test.go"))
	if err != nil {
		return err
	}
	schemas := map[string]map[string]any{}
	var all []sequence
	skipped := map[string]int{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		if err := fileSchemas(file, schemas); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		all = append(all, fileSequences(file, schemas, skipped)...)
	}
	sort.Slice(all, func(a, b int) bool { return all[a].Name < all[b].Name })
	used := map[string]bool{"DeducedParser": true}
	for _, one := range all {
		for _, name := range one.schemas() {
			if !used[name] {
				used[name] = true
				print1(map[string]any{"schema": name, "is": schemas[name]})
			}
		}
	}
	for _, one := range all {
		if err := run(&one, schemas); err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
		print1(one)
	}
	for why, count := range skipped {
		fmt.Fprintf(os.Stderr, "%d left out: %s\n", count, why)
	}
	return nil
}

func print1(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

// fileSchemas notes each schema that a variable's function parses, as the schema of a custom resource.
func fileSchemas(file *ast.File, into map[string]map[string]any) (failed error) {
	note := func(name string, value ast.Expr) {
		var texts []string
		var root string
		ast.Inspect(value, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			if function, ok := call.Fun.(*ast.SelectorExpr); ok {
				text, isText := literal(call.Args[0])
				if isText && function.Sel.Name == "NewParser" {
					texts = append(texts, text)
				} else if isText && function.Sel.Name == "Type" {
					root = text
				}
			}
			return true
		})
		if len(texts) != 1 {
			return
		}
		parsed, err := typed.NewParser(typed.YAMLObject(texts[0]))
		if err != nil {
			failed = fmt.Errorf("%s: %w", name, err)
			return
		}
		types := &parsed.Schema
		if root == "" {
			root = types.Types[0].Name
		}
		made := structural(types, smd.TypeRef{NamedType: &root}, 0)
		if made["properties"] == nil {
			return
		}
		into[name] = made
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ValueSpec:
			if len(node.Values) == 1 {
				note(node.Names[0].Name, node.Values[0])
			}
		case *ast.AssignStmt:
			if name, ok := node.Lhs[0].(*ast.Ident); ok && strings.HasSuffix(name.Name, "Parser") {
				note(name.Name, node.Rhs[0])
			}
		}
		return true
	})
	return failed
}

// open is the schema of an object of any fields.
func open() map[string]any {
	return map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
}

// structural says a type as OpenAPI schemas of definitions do.
func structural(types *smd.Schema, of smd.TypeRef, depth int) map[string]any {
	atom := of.Inlined
	if of.NamedType != nil {
		found, ok := types.FindNamedType(*of.NamedType)
		if !ok || depth > deep {
			return open()
		}
		atom = found.Atom
	}
	relationship := func(own smd.ElementRelationship) smd.ElementRelationship {
		if of.ElementRelationship != nil {
			return *of.ElementRelationship
		}
		return own
	}
	switch {
	case atom.List != nil && atom.Map == nil:
		made := map[string]any{"type": "array", "items": structural(types, atom.List.ElementType, depth+1)}
		switch {
		case relationship(atom.List.ElementRelationship) != smd.Associative:
			made["x-kubernetes-list-type"] = "atomic"
		case len(atom.List.Keys) > 0:
			made["x-kubernetes-list-type"], made["x-kubernetes-list-map-keys"] = "map", atom.List.Keys
			needed(made["items"].(map[string]any), atom.List.Keys)
		default:
			made["x-kubernetes-list-type"] = "set"
		}
		return made
	case atom.Map != nil && atom.List == nil:
		made := map[string]any{"type": "object"}
		properties := map[string]any{}
		for _, field := range atom.Map.Fields {
			property := structural(types, field.Type, depth+1)
			if field.Default != nil {
				property["default"] = field.Default
			}
			properties[field.Name] = property
		}
		if len(properties) > 0 {
			made["properties"] = properties
		}
		if inner := atom.Map.ElementType; inner.NamedType != nil || inner.Inlined.Scalar != nil ||
			inner.Inlined.Map != nil || inner.Inlined.List != nil {
			// Definitions have either names or any name, or they keep what they do not know.
			if len(properties) > 0 {
				made["x-kubernetes-preserve-unknown-fields"] = true
			} else {
				made["additionalProperties"] = structural(types, inner, depth+1)
			}
		}
		if relationship(atom.Map.ElementRelationship) == smd.Atomic {
			made["x-kubernetes-map-type"] = "atomic"
		}
		return made
	case atom.Scalar != nil && atom.List == nil && atom.Map == nil:
		name := map[smd.Scalar]string{smd.String: "string", smd.Numeric: "number", smd.Boolean: "boolean"}[*atom.Scalar]
		return map[string]any{"type": name}
	default:
		return map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	}
}

// needed requires the keys that have no default, as definitions have to.
func needed(items map[string]any, keys []string) {
	required := []string{}
	properties, _ := items["properties"].(map[string]any)
	for _, key := range keys {
		if property, _ := properties[key].(map[string]any); property["default"] == nil {
			required = append(required, key)
		}
	}
	if len(required) > 0 {
		items["required"] = required
	}
}

// fileSequences finds the sequences of a file's tests whose versions all look the same.
func fileSequences(file *ast.File, schemas map[string]map[string]any, skipped map[string]int) (all []sequence) {
	for _, declaration := range file.Decls {
		test, ok := declaration.(*ast.FuncDecl)
		if !ok || test.Body == nil {
			continue
		}
		schema, converted := "", false
		ast.Inspect(test.Body, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if function, ok := call.Fun.(*ast.SelectorExpr); ok {
				name, _ := call.Args[0].(*ast.Ident)
				converted = converted || strings.HasSuffix(function.Sel.Name, "WithConverter")
				if name != nil && (function.Sel.Name == "Test" || function.Sel.Name == "Bench") {
					schema = name.Name
				}
			}
			return true
		})
		number := 0
		ast.Inspect(test.Body, func(node ast.Node) bool {
			pair, ok := node.(*ast.KeyValueExpr)
			if name, is := nameOf(pair); !ok || !is || name != "Ops" {
				return true
			}
			number++
			ops, why := operations(pair.Value)
			switch {
			case converted:
				skipped["versions that look different"]++
			case schema == "" || (schemas[schema] == nil && schema != "DeducedParser"):
				skipped["no schema that is written down"]++
			case why != "":
				skipped[why]++
			default:
				all = append(all, sequence{Name: fmt.Sprintf("%s %02d", strings.TrimPrefix(test.Name.Name, "Test"), number),
					Schema: schema, Ops: ops})
			}
			return false
		})
	}
	return all
}

func nameOf(pair *ast.KeyValueExpr) (string, bool) {
	if pair == nil {
		return "", false
	}
	name, ok := pair.Key.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name, true
}

// operations reads a list of them; or why it cannot be asked.
func operations(list ast.Expr) (ops []operation, why string) {
	literals, ok := list.(*ast.CompositeLit)
	if !ok {
		return nil, "operations that are computed"
	}
	changed := ""
	for _, element := range literals.Elts {
		one, ok := element.(*ast.CompositeLit)
		if !ok {
			return nil, "operations that are computed"
		}
		kind := ""
		switch name := one.Type.(type) {
		case *ast.Ident:
			kind = name.Name
		case *ast.SelectorExpr:
			kind = name.Sel.Name
		}
		if kind == "ChangeParser" {
			pair, _ := one.Elts[0].(*ast.KeyValueExpr)
			name, ok := pair.Value.(*ast.Ident)
			if !ok {
				return nil, "operations that are computed"
			}
			changed = name.Name
			continue
		}
		does := map[string]string{"Apply": "apply", "ForceApply": "force", "Update": "update", "ExtractApply": "extract"}[kind]
		if does == "" {
			return nil, "operations that are computed"
		}
		made := operation{Do: does, Version: "v1", Schema: changed}
		changed = ""
		for _, member := range one.Elts {
			pair, _ := member.(*ast.KeyValueExpr)
			name, _ := nameOf(pair)
			text, isText := literal(pair.Value)
			switch {
			case name == "Manager" && isText:
				made.Manager = text
			case name == "APIVersion" && isText:
				made.Version = text
			case name == "Object" && isText:
				if err := yaml.Unmarshal([]byte(untabbed(text)), &made.Object); err != nil {
					return nil, "objects that no YAML reader takes"
				}
			case name == "Object":
				return nil, "operations that are computed"
			}
		}
		ops = append(ops, made)
	}
	return ops, ""
}

// untabbed takes the tabs of Go's indentation away.
func untabbed(text string) string {
	lines := strings.Split(strings.TrimRight(strings.TrimPrefix(text, "\n"), "\t\n"), "\n")
	prefix := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], "\t"))]
	for at := range lines {
		lines[at] = strings.TrimPrefix(lines[at], prefix)
	}
	return strings.Join(lines, "\n")
}

const group = "ex.io"

// run sends the operations one after the other; what is refused changes nothing.
func run(of *sequence, schemas map[string]map[string]any) error {
	types, err := typesOf(schemas[of.Schema])
	if err != nil {
		return err
	}
	var live *unstructured.Unstructured
	for at := range of.Ops {
		op := &of.Ops[at]
		if op.Schema != "" {
			if types, err = typesOf(schemas[op.Schema]); err != nil {
				return err
			}
		}
		if op.Do == "extract" {
			if err := extract(types, live, op); err != nil {
				return err
			}
		}
		left, err := send(types, live, op)
		if err != nil {
			op.Error = err.Error()
			continue
		}
		live = left.DeepCopy()
		for _, entry := range left.GetManagedFields() {
			var fields any
			if err := json.Unmarshal(entry.FieldsV1.Raw, &fields); err != nil {
				return err
			}
			op.Managers = append(op.Managers, map[string]any{"manager": entry.Manager, "operation": entry.Operation,
				"apiVersion": entry.APIVersion, "fieldsV1": fields})
		}
		left.SetManagedFields(nil)
		op.Left = bare(left.Object)
	}
	return nil
}

func typesOf(schema map[string]any) (managedfields.TypeConverter, error) {
	if schema == nil {
		return managedfields.NewDeducedTypeConverter(), nil
	}
	// What every object has besides.
	text := map[string]any{"type": "string"}
	managed := map[string]any{"type": "array", "x-kubernetes-list-type": "atomic", "items": open()}
	properties := map[string]any{"apiVersion": text, "kind": text, "metadata": map[string]any{"type": "object",
		"properties": map[string]any{"name": text, "managedFields": managed}}}
	for name, property := range schema["properties"].(map[string]any) {
		properties[name] = property
	}
	schema = maps.Clone(schema)
	schema["properties"] = properties
	models := map[string]*spec.Schema{}
	for _, version := range []string{"v1", "v2", "v3", "v4"} {
		text, err := json.Marshal(schema)
		if err != nil {
			return nil, err
		}
		model := &spec.Schema{}
		if err := json.Unmarshal(text, model); err != nil {
			return nil, err
		}
		model.AddExtension("x-kubernetes-group-version-kind",
			[]any{map[string]any{"group": group, "version": version, "kind": "Thing"}})
		models["io.ex."+version+".Thing"] = model
	}
	return managedfields.NewTypeConverter(models, false)
}

func send(types managedfields.TypeConverter, live *unstructured.Unstructured, op *operation) (*unstructured.Unstructured, error) {
	kind := schema.GroupVersionKind{Group: group, Version: op.Version, Kind: "Thing"}
	sames := same{}
	manager, err := managedfields.NewDefaultCRDFieldManager(types, sames, sames, sames, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		return nil, err
	}
	sent, err := whole(op)
	if err != nil {
		return nil, err
	}
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(kind)
	if live != nil {
		before = live.DeepCopy()
		before.SetGroupVersionKind(kind)
	}
	var left runtime.Object
	switch op.Do {
	case "update":
		left, err = manager.Update(before, sent, op.Manager)
	default:
		left, err = manager.Apply(before, sent, op.Manager, op.Do == "force")
	}
	if err != nil {
		return nil, err
	}
	return left.(*unstructured.Unstructured), nil
}

// whole is the object of an operation with all that the server wants of it, and with numbers as the server reads them.
func whole(op *operation) (*unstructured.Unstructured, error) {
	object := map[string]any{}
	if fields, ok := op.Object.(map[string]any); ok {
		maps.Copy(object, fields)
	}
	object["apiVersion"], object["kind"] = group+"/"+op.Version, "Thing"
	object["metadata"] = map[string]any{"name": "one"}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	made := &unstructured.Unstructured{}
	return made, made.UnmarshalJSON(text)
}

// extract puts what the manager owns below the object of the operation, as clients do that apply what they applied with
// a change; such an apply is forced.
func extract(types managedfields.TypeConverter, live *unstructured.Unstructured, op *operation) error {
	op.Do = "force"
	sent, err := whole(op)
	if err != nil || live == nil {
		return err
	}
	set := fieldpath.NewSet()
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == op.Manager && entry.Operation == "Apply" && entry.APIVersion == group+"/"+op.Version {
			if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.Raw)); err != nil {
				return err
			}
		}
	}
	before := live.DeepCopy()
	before.SetAPIVersion(group + "/" + op.Version)
	before.SetManagedFields(nil)
	current, err := types.ObjectToTyped(before, typed.AllowDuplicates)
	if err != nil {
		return err
	}
	over, err := types.ObjectToTyped(sent)
	if err != nil {
		return err
	}
	merged, err := current.ExtractItems(set).Merge(over)
	if err != nil {
		return err
	}
	object, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return fmt.Errorf("%v is no object", merged.AsValue().Unstructured())
	}
	op.Object = bare(object)
	return nil
}

// bare is an object without what the harness put around it.
func bare(object map[string]any) map[string]any {
	inside := map[string]any{}
	for name, value := range object {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			inside[name] = value
		}
	}
	return inside
}

// same converts nothing but the name of the version.
type same struct{}

func (same) Convert(_, _, _ any) error { return fmt.Errorf("not asked for") }
func (same) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	out := in.DeepCopyObject()
	kind := in.GetObjectKind().GroupVersionKind()
	if found, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{kind}); ok {
		out.GetObjectKind().SetGroupVersionKind(found)
	}
	return out, nil
}
func (same) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (same) Default(runtime.Object) {}
func (same) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(kind)
	return out, nil
}
