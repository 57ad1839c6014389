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

// wings says which other wings of the house the packages of each may import. A
// package outside of them fails the test, so that every new one is placed on
// purpose. The order shows that there is no circle: a wing uses only those
// above it.
var wings = []struct {
	name string
	uses []string
}{
	{"lang", nil},
	{"disk", nil},
	{"line", nil},
	{"pki", []string{"lang", "disk"}},
	{"model", []string{"lang", "pki"}},
	{"data", []string{"lang", "disk"}},
	{"ops", []string{"lang", "pki", "model", "data"}},
	{"auth", []string{"lang", "pki", "model", "data", "ops"}},
	{"policy", []string{"lang", "model", "data", "auth"}},
	{"fabric", []string{"lang", "pki", "line", "model", "data", "ops", "policy"}},
	{"web", []string{"lang", "pki", "model", "data", "ops", "auth", "policy", "fabric"}},
	{"tool", []string{"lang", "disk", "pki", "model", "ops"}},
	{"transit", []string{"lang", "disk", "pki", "line", "ops", "tool"}},
	{"run", []string{"lang", "disk", "line", "pki", "model", "data", "ops", "auth", "policy", "fabric", "web", "tool", "transit"}},
}

// siblings says which packages of its own wing a package may import.
var siblings = map[string][]string{
	"lang/filter":          {"lang/fault", "lang/spell"},
	"lang/kind":            {"lang/fault", "lang/filter", "lang/spell"},
	"lang/schema":          {"lang/fault"},
	"line/channel":         {"line/message", "line/wire"},
	"line/stream":          {"line/message", "line/wire"},
	"data/store/etcdstore": {"data/store"},
	"data/store/storetest": {"data/store"},
	"data/format":          {"data/store"},
	"data/network":         {"data/store"},
	"data/state":           {"data/format", "data/network", "data/state/cow", "data/store"},
	"data/integrity":       {"data/format", "data/network", "data/state", "data/store"},
	"data/backup":          {"data/store"},
	"ops/metrics":          {"ops/build"},
	"auth/authn":           {"auth/mfa"},
	"auth/enroll":          {"auth/authn"},
	"fabric":               {"fabric/circuit", "fabric/control", "fabric/datamodel", "fabric/edge", "fabric/link", "fabric/path", "fabric/permit", "fabric/sync", "fabric/terminator", "fabric/tunnel", "fabric/usage"},
	"fabric/control":       {"fabric/edge"},
	"fabric/sync":          {"fabric/control", "fabric/edge", "fabric/permit"},
	"fabric/datamodel":     {"fabric/control"},
	"fabric/terminator":    {"fabric/control", "fabric/permit"},
	"fabric/link":          {"fabric/control", "fabric/path"},
	"fabric/circuit":       {"fabric/control", "fabric/path", "fabric/permit", "fabric/terminator"},
	"fabric/tunnel":        {"fabric/circuit", "fabric/control", "fabric/permit", "fabric/terminator"},
	"fabric/usage":         {"fabric/circuit"},
	"policy/session":       {"policy/access", "policy/posture"},
	"policy/explain":       {"policy/access", "policy/session"},
	"web/api":              {"web/rest"},
	"web/api/client":       {"web/api", "web/rest"},
	"web/api/management":   {"web/api", "web/rest"},
	"web/api/mesh":         {"web/api", "web/rest"},
	"tool/remote":          {"tool/profile"},
	"tool/join":            {"tool/remote"},
	"tool/command":         {"tool/join", "tool/manifest", "tool/profile", "tool/remote", "tool/screen"},
	"transit/door":         {"transit/forward"},
	"transit/exit":         {"transit/forward"},
	"transit/router":       {"transit/door", "transit/exit", "transit/forward", "transit/span", "transit/uplink"},
	"transit/station":      {"transit/router", "transit/uplink"},
	"transit/client":       {"transit/device"},
	"transit/tunneler":     {"transit/client"},
	"run/cli":              {"run/server"},
}

// narrow are packages that may use less of other wings than their wing may:
// wings, or single packages of them.
var narrow = map[string][]string{
	"auth/mfa":             {},
	"data/format":          {},
	"data/network":         {},
	"data/store":           {},
	"data/state/cow":       {},
	"fabric/path":          {},
	"fabric/scripted":      {"line"},
	"fabric/permit":        {"data/state", "line/message", "model", "policy/access"},
	"ops/build":            {},
	"ops/config":           {"lang/document", "lang/spell"},
	"ops/egress":           {},
	"ops/health":           {},
	"ops/limit":            {},
	"ops/trace":            {},
	"policy/posture":       {"lang", "model"},
	"web/rest":             {"lang", "data/state", "ops/limit"},
	"tool/remote":          {"pki"},
	"tool/profile":         {"disk"},
	"tool/screen":          {},
	"tool/join":            {"lang/document", "lang/fault", "disk", "pki", "model"},
	"tool/manifest":        {"lang", "model"},
	"tool/command":         {"lang", "model"},
	"transit/client":       {"lang/spell", "disk", "pki", "line", "tool/profile", "tool/remote"},
	"transit/device":       {},
	"transit/door":         {"line", "pki"},
	"transit/exit":         {"line"},
	"transit/forward":      {"line"},
	"transit/span":         {"line", "pki"},
	"transit/station":      {"disk", "lang/document", "ops/health", "ops/metrics", "pki", "tool/join"},
	"transit/tunneler":     {},
	"transit/uplink":       {"line"},
	"run/cli":              {"ops", "tool", "transit"},
	"data/store/etcdstore": {"disk"},
	"data/store/storetest": {},
}

// wingOf is the first part of a package's path.
func wingOf(pkg string) string {
	wing, _, _ := strings.Cut(pkg, "/")
	return wing
}

// covers reports whether one of places is the package or a folder above it.
func covers(places []string, pkg string) bool {
	return slices.ContainsFunc(places, func(place string) bool {
		return pkg == place || strings.HasPrefix(pkg, place+"/")
	})
}

// mayImport says whether a package may import another one of ours.
func mayImport(uses []string, pkg, target string) bool {
	if wingOf(pkg) == wingOf(target) {
		return slices.Contains(siblings[pkg], target)
	}
	if less, ok := narrow[pkg]; ok && !covers(less, target) {
		return false
	}
	return slices.Contains(uses, wingOf(target))
}

// banned are calls that hide time or the network from tests and from the rules
// on them.
var banned = map[string][]string{
	"time.Sleep":         {},
	"http.Get":           {},
	"http.Post":          {},
	"http.DefaultClient": {},
	"time.Now":           {"run/server", "data/state", "data/store/storetest", "web/rest"},
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
	used := map[string][]string{}
	for _, w := range wings {
		used[w.name] = w.uses
	}
	for _, s := range sources(t) {
		uses, known := used[wingOf(s.pkg)]
		if !known {
			t.Errorf("%s: package %s is in none of the wings", s.path, s.pkg)
			continue
		}
		for _, spec := range s.file.Imports {
			target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "netkeep/internal/")
			if ours && !mayImport(uses, s.pkg, target) {
				t.Errorf("%s: package %s must not import %s", s.path, s.pkg, target)
			}
		}
	}
}

// TestNobodyMayMoreThanItDoes looks for permissions that nobody uses: a package
// could take them up without a word.
func TestNobodyMayMoreThanItDoes(t *testing.T) {
	imports := map[string][]string{}
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			if target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "netkeep/internal/"); ours {
				imports[s.pkg] = append(imports[s.pkg], target)
			}
		}
	}
	unused := func(pkg, place string) bool {
		return !slices.ContainsFunc(imports[pkg], func(target string) bool { return covers([]string{place}, target) })
	}
	for what, list := range map[string]map[string][]string{"siblings": siblings, "narrow": narrow} {
		for pkg, places := range list {
			for _, place := range places {
				if unused(pkg, place) {
					t.Errorf("%s of %s: it does not import %s", what, pkg, place)
				}
			}
		}
	}
}

// TestWings holds the list of wings to its own promise.
func TestWings(t *testing.T) {
	var above []string
	for _, w := range wings {
		for _, u := range w.uses {
			if !slices.Contains(above, u) {
				t.Errorf("wing %s uses %s, which is not above it", w.name, u)
			}
		}
		above = append(above, w.name)
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
