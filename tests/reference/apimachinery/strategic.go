package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	patcher "k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// item has one field for each way in which strategic merge patches treat fields; the tests of apimachinery use its names.
type item struct {
	Name                  string               `json:"name,omitempty"`
	Value                 string               `json:"value,omitempty"`
	Other                 string               `json:"other,omitempty"`
	MergingList           []item               `json:"mergingList,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	NonMergingList        []item               `json:"nonMergingList,omitempty"`
	MergingIntList        []int                `json:"mergingIntList,omitempty" patchStrategy:"merge"`
	NonMergingIntList     []int                `json:"nonMergingIntList,omitempty"`
	MergeItemPtr          *item                `json:"mergeItemPtr,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	SimpleMap             map[string]string    `json:"simpleMap,omitempty"`
	ReplacingItem         runtime.RawExtension `json:"replacingItem,omitempty" patchStrategy:"replace"`
	JSONItem              struct{ Raw []byte } `json:"jsonItem,omitempty"`
	RetainKeysMap         retained             `json:"retainKeysMap,omitempty" patchStrategy:"retainKeys"`
	RetainKeysMergingList []item               `json:"retainKeysMergingList,omitempty" patchStrategy:"merge,retainKeys" patchMergeKey:"name"`
}

type retained struct {
	Name           string            `json:"name,omitempty"`
	Value          string            `json:"value,omitempty"`
	Other          string            `json:"other,omitempty"`
	SimpleMap      map[string]string `json:"simpleMap,omitempty"`
	MergingIntList []int             `json:"mergingIntList,omitempty" patchStrategy:"merge"`
	MergingList    []item            `json:"mergingList,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	NonMergingList []item            `json:"nonMergingList,omitempty"`
}

// states are the inputs of one case; what a test expects is asked of the real code instead.
type states struct {
	Original any `json:"original,omitempty"`
	Modified any `json:"modified,omitempty"`
	Current  any `json:"current,omitempty"`
	Patch    any `json:"patch,omitempty"`
}

// answered is a line of the golden file: states with what the real code makes of them.
type answered struct {
	states
	// Applied is the patch on the original.
	Applied *answer `json:"applied,omitempty"`
	// TwoWay leads from the original to the modified state, TwoWayResult is where it leads.
	TwoWay       *answer `json:"twoWay,omitempty"`
	TwoWayResult *answer `json:"twoWayResult,omitempty"`
	// ThreeWay is made although others changed the same; Conflict is whether they did.
	ThreeWay       *answer `json:"threeWay,omitempty"`
	ThreeWayResult *answer `json:"threeWayResult,omitempty"`
	Conflict       bool    `json:"conflict,omitempty"`
}

type answer struct {
	Out   json.RawMessage `json:"out,omitempty"`
	Error string          `json:"error,omitempty"`
}

// strategic prints the inputs of the tables in apimachinery's own tests of strategic merge patches, with its answers.
func strategic(module string) error {
	path := filepath.Join(module, "pkg/util/strategicpatch/patch_test.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return err
	}
	cases, err := tableCases(file)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, given := range cases {
		line, stable, err := ask(given)
		if err != nil {
			return err
		}
		text, err := json.Marshal(line)
		if err != nil {
			return err
		}
		if !stable {
			return fmt.Errorf("%s is answered differently from time to time", text)
		}
		if !seen[string(text)] {
			fmt.Println(string(text))
		}
		seen[string(text)] = true
	}
	return nil
}

// tableCases finds the cases: literals with such fields, and YAML texts with a list of them.
func tableCases(file *ast.File) (cases []states, failed error) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CompositeLit:
			found := map[string]any{}
			for _, element := range node.Elts {
				pair, ok := element.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				name, ok := pair.Key.(*ast.Ident)
				if !ok {
					continue
				}
				if text, ok := literal(pair.Value); ok {
					var value any
					if yaml.Unmarshal([]byte(text), &value) == nil {
						found[name.Name] = value
					}
				}
			}
			cases = append(cases, stated(found)...)
		case *ast.BasicLit:
			text, _ := literal(node)
			var table struct {
				TestCases []map[string]any `json:"testCases"`
			}
			if yaml.Unmarshal([]byte(text), &table) == nil {
				for _, one := range table.TestCases {
					cases = append(cases, stated(map[string]any{"Original": one["original"], "Modified": one["modified"],
						"Current": one["current"], "TwoWay": one["twoWay"]})...)
				}
			}
		}
		return true
	})
	return cases, failed
}

func stated(found map[string]any) []states {
	first := func(names ...string) any {
		for _, name := range names {
			if _, is := found[name].(map[string]any); is {
				return found[name]
			}
		}
		return nil
	}
	given := states{Original: first("Original", "Old"), Modified: first("Modified", "New"),
		Current: first("Current"), Patch: first("TwoWay")}
	if given.Original == nil || (given.Modified == nil && given.Patch == nil) {
		return nil
	}
	return []states{given}
}

// literal is the text of a string literal or of one turned into bytes.
func literal(of ast.Expr) (string, bool) {
	if call, ok := of.(*ast.CallExpr); ok && len(call.Args) == 1 {
		return literal(call.Args[0])
	}
	basic, ok := of.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// ask has the real code answer a few times: what depends on the order of Go's maps is no answer.
func ask(given states) (line answered, stable bool, err error) {
	var before string
	for range 8 {
		line, err = answerOnce(given)
		if err != nil {
			return line, false, err
		}
		text, err := json.Marshal(line)
		if err != nil {
			return line, false, err
		}
		if before != "" && before != string(text) {
			return line, false, nil
		}
		before = string(text)
	}
	return line, true, nil
}

func answerOnce(given states) (answered, error) {
	line := answered{states: given}
	text := func(value any) []byte {
		if value == nil {
			return []byte("{}")
		}
		out, err := json.Marshal(value)
		if err != nil {
			panic(err)
		}
		return out
	}
	schema, err := patcher.NewPatchMetaFromStruct(item{})
	if err != nil {
		return line, err
	}
	original, modified, current := text(given.Original), text(given.Modified), text(given.Current)
	applied := func(to, patch []byte) *answer {
		return told(patcher.StrategicMergePatchUsingLookupPatchMeta(to, patch, schema))
	}
	if given.Patch != nil {
		line.Applied = applied(original, text(given.Patch))
	}
	if given.Modified == nil {
		return line, nil
	}
	line.TwoWay = told(patcher.CreateTwoWayMergePatchUsingLookupPatchMeta(original, modified, schema))
	if line.TwoWay.Error == "" {
		line.TwoWayResult = applied(original, line.TwoWay.Out)
	}
	if given.Current == nil {
		return line, nil
	}
	line.ThreeWay = told(patcher.CreateThreeWayMergePatch(original, modified, current, schema, true))
	if line.ThreeWay.Error == "" {
		line.ThreeWayResult = applied(current, line.ThreeWay.Out)
	}
	_, err = patcher.CreateThreeWayMergePatch(original, modified, current, schema, false)
	line.Conflict = err != nil && mergepatch.IsConflict(err)
	return line, nil
}

func told(out []byte, err error) *answer {
	if err != nil {
		return &answer{Error: err.Error()}
	}
	return &answer{Out: out}
}
