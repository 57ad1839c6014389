package promise

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// exported are the names of package overlay that programs may use: functions and methods
// with what they take and give, types with their fields, constants and variables.
func exported(t *testing.T, all surface) {
	t.Helper()
	paths, err := filepath.Glob("../../overlay/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				function(t, all, d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					declared(all, spec)
				}
			}
		}
	}
}

func function(t *testing.T, all surface, d *ast.FuncDecl) {
	t.Helper()
	of := ""
	if d.Recv != nil {
		of = written(t, d.Recv.List[0].Type) + "."
		if !ast.IsExported(strings.TrimLeft(of, "*")) {
			return
		}
	}
	if d.Name.IsExported() {
		all.add("overlay func "+of+d.Name.Name, takes(t, d.Type)...)
	}
}

// takes are the types of what a function takes and gives: names may change.
func takes(t *testing.T, f *ast.FuncType) (words []string) {
	t.Helper()
	for kind, list := range map[string]*ast.FieldList{"takes:": f.Params, "gives:": f.Results} {
		if list == nil {
			continue
		}
		var types []string
		for _, field := range list.List {
			for range max(1, len(field.Names)) {
				types = append(types, strings.ReplaceAll(written(t, field.Type), " ", ""))
			}
		}
		words = append(words, kind+strings.Join(types, ","))
	}
	return words
}

func declared(all surface, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			if name.IsExported() {
				all.add("overlay value " + name.Name)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return
		}
		all.add("overlay type " + s.Name.Name)
		if object, is := s.Type.(*ast.StructType); is {
			for _, field := range object.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						all.add("overlay type "+s.Name.Name, name.Name)
					}
				}
			}
		}
	}
}

func written(t *testing.T, node ast.Node) string {
	t.Helper()
	var out bytes.Buffer
	if err := printer.Fprint(&out, token.NewFileSet(), node); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}
