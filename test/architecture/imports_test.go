// Package architecture holds the rules of the whole program that no compiler
// checks.
package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed says which of our packages each package may import. A package that
// is not here fails the test, so that every new one is placed on purpose.
var allowed = map[string][]string{
	"build":           {},
	"config":          {"spell"},
	"egress":          {},
	"fault":           {},
	"health":          {},
	"limit":           {},
	"spell":           {},
	"store":           {},
	"state/cow":       {},
	"trace":           {},
	"filter":          {"fault", "spell"},
	"mfa":             {"fault"},
	"pki":             {"fault"},
	"schema":          {"fault"},
	"store/etcdstore": {"store"},
	"store/storetest": {"store"},
	"kind":            {"fault", "filter"},
	"model":           {"fault", "kind", "pki", "schema"},
	"state":           {"fault", "filter", "kind", "state/cow", "store"},
	"access":          {"fault", "kind", "model", "state", "state/cow"},
	"edge":            {"model", "state"},
	"posture":         {"fault", "kind", "model"},
	"session":         {"access", "authn", "fault", "kind", "model", "posture", "state", "state/cow"},
	"authn":           {"fault", "kind", "limit", "mfa", "model", "pki", "state"},
	"rest":            {"fault", "filter", "kind", "limit", "state", "state/cow"},
	"metrics":         {"fault", "kind", "model", "pki", "state", "store"},
	"backup":          {"fault", "store"},
	"integrity":       {"fault", "kind", "state", "store"},
	"enroll":          {"authn", "fault", "kind", "model", "pki", "state"},
	"api": {
		"access", "authn", "backup", "build", "edge", "enroll", "fault", "filter", "integrity", "kind", "limit", "mfa", "model", "pki", "posture", "rest", "session", "state", "state/cow",
	},
	"api/client": {"access", "api", "authn", "fault", "filter", "kind", "model", "pki", "posture", "rest", "session", "state"},
	"api/management": {
		"access", "api", "authn", "enroll", "fault", "filter", "kind", "model", "pki", "posture", "rest", "state",
	},
	"server": {
		"access", "api", "api/client", "api/management", "authn", "backup", "build", "config", "edge", "egress", "enroll", "health", "integrity", "kind", "limit", "metrics", "model", "pki", "posture", "rest", "session", "state", "store", "store/etcdstore", "trace",
	},
	"cli": {"api", "build", "config", "edge", "server"},
}

// banned are calls that hide time or the network from tests and from the rules
// on them.
var banned = map[string][]string{
	"time.Sleep":         {},
	"http.Get":           {},
	"http.Post":          {},
	"http.DefaultClient": {},
	"time.Now":           {"server", "state", "store/storetest", "rest"},
}

type source struct {
	pkg  string // below internal
	path string
	file *ast.File
}

func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..", "internal")
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		all = append(all, source{filepath.ToSlash(rel), path, f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("found no source files")
	}
	return all
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		may, known := allowed[s.pkg]
		if !known {
			t.Errorf("%s: package %s has no place in the list of allowed imports", s.path, s.pkg)
			continue
		}
		for _, spec := range s.file.Imports {
			target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "netkeep/internal/")
			if ours && !slices.Contains(may, target) {
				t.Errorf("%s: package %s must not import %s", s.path, s.pkg, target)
			}
		}
	}
}

func TestBannedCalls(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			name := pkg.Name + "." + sel.Sel.Name
			if may, ban := banned[name]; ban && !slices.Contains(may, s.pkg) {
				t.Errorf("%s: package %s must not use %s", s.path, s.pkg, name)
			}
			return true
		})
	}
}

func TestPackageComments(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		documented[s.pkg] = documented[s.pkg] || s.file.Doc != nil
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no comment that says what it owns", pkg)
		}
	}
}
