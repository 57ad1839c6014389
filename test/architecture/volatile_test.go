package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// retold are structs that say again what a volatile record says, and why they
// may: each is a shape that somebody else has given, or a part of the record.
var retold = map[string]string{
	"internal/web/api/fabric linkValue":   "what a controller says when it is inspected, in the members that tools expect",
	"internal/web/api sessionRouter":      "what clients read of a router that a session may use, older ones under other names",
	"internal/web/api/fabric hopOut":      "a path has of each link what it adds to the way",
	"internal/tool/command way":           "what a table takes from that answer",
	"internal/tool/command topology":      "what a picture takes from an answer",
	"internal/policy/explain Explanation": "its links are those of a chain of reasons",
	"internal/web/console explanation":    "what a page takes from that answer",
}

// alike is how many fields a struct may have in common with a volatile kind by
// chance.
const alike = 2

// TestVolatileDeclaredOnce has no struct on the controller's side or the command
// line's that declares the fields of a volatile kind a second time: who adds one
// would have to know of all of them.
func TestVolatileDeclaredOnce(t *testing.T) {
	root := filepath.Join("..", "..")
	used := map[string]bool{}
	for _, wing := range []string{"fabric", "web", "tool", "run", "policy", "ops"} {
		err := filepath.WalkDir(filepath.Join(root, "internal", wing), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			pkg, err := filepath.Rel(root, filepath.Dir(path))
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range gen.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						again(t, used, filepath.ToSlash(pkg)+" "+typ.Name.Name, typ)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range retold {
		if !used[name] {
			t.Errorf("%s is not needed among those that may say again what a volatile record says", name)
		}
	}
}

// again looks at every struct in the declaration of a type.
func again(t *testing.T, used map[string]bool, name string, typ *ast.TypeSpec) {
	ast.Inspect(typ, func(n ast.Node) bool {
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, d := range model.All.Defs {
			if d.Lane != kind.Volatile {
				continue
			}
			same := shared(s, d)
			switch {
			case len(same) <= alike:
			case retold[name] != "":
				used[name] = true
			default:
				t.Errorf("%s declares %s of a %s again; use what is in internal/model, so that a field is declared once", name, strings.Join(same, ", "), d.Name)
			}
		}
		return true
	})
}

// shared are the fields of a struct that a kind has too, by their names in Go or
// JSON.
func shared(s *ast.StructType, d *kind.Def) (same []string) {
	typ := reflect.TypeOf(d.New()).Elem()
	known := map[string]bool{}
	for i := range typ.NumField() {
		if f := typ.Field(i); !f.Anonymous {
			known[f.Name], known[f.Tag.Get("json")] = true, true
		}
	}
	for _, f := range s.Fields.List {
		tag := ""
		if f.Tag != nil {
			text, _ := strconv.Unquote(f.Tag.Value)
			tag = reflect.StructTag(text).Get("json")
		}
		for _, name := range f.Names {
			if known[name.Name] || tag != "" && known[tag] {
				same = append(same, name.Name)
			}
		}
	}
	return same
}
