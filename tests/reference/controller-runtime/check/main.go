// Checks the types of one main package, with the files of an overlay, as the compiler would, without compiling anything:
// every package it needs is read from its source, declarations only. A hundred times cheaper than a build with an empty
// cache.
//
//	check [-overlay FILE] PACKAGE      run in the module's folder
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

type listed struct {
	ImportPath, Dir, Name string
	GoFiles               []string
	ImportMap             map[string]string
	DepOnly, Standard     bool
	Error                 *struct{ Err string }
}

// The packages that a package needs, each behind those that it imports itself.
func list(overlay, name string) ([]listed, error) {
	arguments := []string{"list", "-e", "-deps", "-json=ImportPath,Dir,Name,GoFiles,ImportMap,DepOnly,Standard,Error"}
	if overlay != "" {
		arguments = append(arguments, "-overlay", overlay)
	}
	command := exec.Command("go", append(arguments, name)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, err
	}
	var all []listed
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listed
		if err := lines.Decode(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if one.Error != nil {
			return nil, errors.New(one.Error.Err)
		}
		all = append(all, one)
	}
}

type importer struct {
	known map[string]*types.Package
	names map[string]string
}

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if mapped := i.names[path]; mapped != "" {
		path = mapped
	}
	if known := i.known[path]; known != nil {
		return known, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}

func check(overlay string, replace map[string]string, name string) (problems int, err error) {
	all, err := list(overlay, name)
	if err != nil {
		return 0, err
	}
	files := token.NewFileSet()
	known := map[string]*types.Package{}
	for _, one := range all {
		if one.ImportPath == "unsafe" {
			continue
		}
		var parsed []*ast.File
		for _, file := range one.GoFiles {
			path := filepath.Join(one.Dir, file)
			from := path
			if other := replace[path]; other != "" {
				from = other
			}
			text, err := os.ReadFile(from)
			if err != nil {
				return 0, err
			}
			tree, err := parser.ParseFile(files, from, text, parser.SkipObjectResolution)
			if err != nil {
				return 0, err
			}
			parsed = append(parsed, tree)
		}
		config := types.Config{
			Importer:         importer{known, one.ImportMap},
			Sizes:            types.SizesFor("gc", runtime.GOARCH),
			IgnoreFuncBodies: one.DepOnly,
			FakeImportC:      true,
			Error: func(problem error) {
				if !one.DepOnly {
					problems++
					fmt.Println(problem)
				}
			},
		}
		made, _ := config.Check(one.ImportPath, files, parsed, nil)
		known[one.ImportPath] = made
	}
	return problems, nil
}

func main() {
	overlay := flag.String("overlay", "", "the file of `go build -overlay`")
	flag.Parse()
	var read struct{ Replace map[string]string }
	if *overlay != "" {
		text, err := os.ReadFile(*overlay)
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
	}
	problems, err := check(*overlay, read.Replace, flag.Arg(0))
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	if problems > 0 {
		os.Exit(1)
	}
}
