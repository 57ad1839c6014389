// Package architecture holds the rules of the whole program that no compiler
// checks.
package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
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
	{"wire", nil},
	{"pki", []string{"lang", "disk"}},
	{"model", []string{"lang", "pki"}},
	{"data", []string{"lang", "disk"}},
	{"ops", []string{"lang", "disk", "pki", "model", "data"}},
	// What serves an API and decides.
	{"auth", []string{"lang", "pki", "model", "data", "ops"}},
	{"policy", []string{"lang", "model", "data", "auth"}},
	{"fabric", []string{"lang", "pki", "wire", "model", "data", "ops", "policy"}},
	{"web", []string{"lang", "wire", "pki", "model", "data", "ops", "auth", "policy", "fabric"}},
	// What asks one and carries traffic.
	{"client", []string{"lang", "disk", "pki", "wire", "model", "ops"}},
	{"router", []string{"lang", "disk", "pki", "wire", "ops", "client"}},
	{"tool", []string{"lang", "disk", "pki", "model", "ops", "client"}},
	// What brings a network of others here.
	{"takeover", []string{"lang", "disk", "pki", "model", "data", "ops", "auth"}},
	{"run", []string{"lang", "disk", "wire", "pki", "model", "data", "ops", "auth", "policy", "fabric", "web", "client", "router", "tool", "takeover"}},
}

// siblings says which packages of its own wing a package may import.
var siblings = map[string][]string{
	"lang/filter":          {"lang/fault", "lang/spell"},
	"lang/kind":            {"lang/fault", "lang/filter", "lang/pack", "lang/spell", "lang/terse"},
	"lang/terse":           {"lang/pack"},
	"lang/schema":          {"lang/fault"},
	"wire/channel":         {"wire/message", "wire"},
	"wire/message":         {"wire"},
	"wire/stream":          {"wire/message", "wire"},
	"data/store/etcdstore": {"data/store"},
	"data/store/storetest": {"data/store"},
	"data/duty":            {"data/store"},
	"data/format":          {"data/store"},
	"data/invite":          {"data/store"},
	"data/keyring":         {"data/store"},
	"data/owner":           {"data/store"},
	"data/state":           {"data/checkpoint", "data/format", "data/invite", "data/keyring", "data/owner", "data/state/cow", "data/store"},
	"data/integrity":       {"data/state", "data/store"},
	"data/backup":          {"data/store"},
	"ops/archive":          {"ops/audit"},
	"ops/metrics":          {"ops/build"},
	"ops/history":          {"ops/audit"},
	"ops/alert":            {"ops/audit", "ops/egress", "ops/outlet"},
	"ops/outlet":           {"ops/audit", "ops/egress"},
	"auth/people":          {"auth/token"},
	"auth/authn":           {"auth/mfa", "auth/people", "auth/power", "auth/token"},
	"auth/enroll":          {"auth/authn", "auth/people", "auth/power", "auth/token"},
	"fabric":               {"fabric/circuit", "fabric/control", "fabric/datamodel", "fabric/seam", "fabric/link", "fabric/path", "fabric/permit", "fabric/roster", "fabric/apisync", "fabric/terminator", "fabric/asclient", "fabric/herald", "fabric/usage", "fabric/whereabouts"},
	"takeover":             {"takeover/ziticonf", "takeover/zitidb"},
	"fabric/control":       {"fabric/herald", "fabric/seam"},
	"fabric/apisync":       {"fabric/control", "fabric/permit"},
	"fabric/datamodel":     {"fabric/control"},
	"fabric/terminator":    {"fabric/control", "fabric/permit"},
	"fabric/link":          {"fabric/control", "fabric/path"},
	"fabric/circuit":       {"fabric/control", "fabric/herald", "fabric/path", "fabric/permit", "fabric/terminator"},
	"fabric/asclient":      {"fabric/circuit", "fabric/control", "fabric/permit", "fabric/terminator"},
	"fabric/usage":         {"fabric/circuit"},
	"policy/assertion":     {"policy/access", "policy/validity"},
	"policy/lint":          {"policy/access"},
	"policy/grant":         {"policy/access", "policy/posture"},
	"policy/explain":       {"policy/access", "policy/grant"},
	"web/api":              {"web/rest"},
	"web/api/client":       {"web/api", "web/rest"},
	"web/api/management":   {"web/api", "web/rest"},
	"web/api/fabric":       {"web/api", "web/rest"},
	"web/console":          {"web/console/scene", "web/signon"},
	"web/oidc":             {"web/ticket"},
	"web/signon":           {"web/ticket"},
	"client/enroll":        {"client/remote"},
	"client/join":          {"client/remote"},
	"client/sso":           {"client/remote"},
	"tool/command":         {"tool/manifest", "tool/profile", "tool/screen"},
	"router/edge":          {"router/forward"},
	"router/exit":          {"router/forward"},
	"router/forward":       {"router/lookup"},
	"router/link":          {"router/lookup"},
	"router/node":          {"router/edge", "router/exit", "router/forward", "router/link", "router/uplink"},
	"router/home":          {"router/node", "router/uplink"},
	"client/sdk":           {"client/device", "client/remote"},
	"client/tunneler":      {"client/intercept", "client/names", "client/resolver", "client/sdk", "client/status", "client/tun"},
	"run/cli":              {"run/server"},
}

// narrow are packages that may use less of other wings than their wing may:
// wings, or single packages of them.
var narrow = map[string][]string{
	"auth/mfa":             {},
	"auth/token":           {},
	"data/duty":            {},
	"data/format":          {},
	"data/invite":          {},
	"data/keyring":         {},
	"data/owner":           {},
	"data/store":           {},
	"data/state/cow":       {},
	"fabric/herald":        {"lang/kind", "data/state"},
	"fabric/path":          {},
	"fabric/permit":        {"data/state", "wire/message", "model", "policy/access"},
	"ops/alert":            {"lang/kind", "model", "data/state"},
	"ops/archive":          {"disk"},
	"takeover":             {"lang", "pki", "model", "data/state"},
	"takeover/ziticonf":    {"lang/document"},
	"takeover/zitidb":      {},
	"ops/build":            {},
	"ops/clock":            {},
	"ops/config":           {"lang/document", "lang/spell"},
	"ops/egress":           {},
	"ops/health":           {},
	"ops/limit":            {},
	"ops/recent":           {},
	"ops/trace":            {},
	"ops/outlet":           {"disk", "lang/kind", "model", "data/state"},
	"policy/assertion":     {"lang", "model", "data"},
	"policy/lint":          {"lang", "model", "data"},
	"policy/posture":       {"lang", "model"},
	"policy/request":       {"lang", "model", "data/state", "auth/power"},
	"policy/validity":      {"lang", "model", "data/state"},
	"web/console":          {"lang/kind", "ops/limit"},
	"web/console/scene":    {},
	"web/rest":             {"lang", "data/state", "ops/limit"},
	"web/oidc":             {"lang", "model", "data/state", "ops/limit", "auth/authn", "auth/token"},
	"web/signon":           {},
	"web/ticket":           {},
	"client/remote":        {"pki"},
	"tool/profile":         {"disk", "client/remote", "client/sso"},
	"tool/screen":          {},
	"tool/unit":            {},
	"client/enroll":        {"lang/fault", "lang/method", "disk", "pki"},
	"tool/layout":          {"lang/document", "disk", "client/enroll"},
	"tool/manifest":        {"lang", "model"},
	"tool/command":         {"lang", "model", "ops/archive", "disk", "client/enroll", "client/remote", "client/sso"},
	"client/sdk":           {"lang/fault", "lang/spell", "disk", "pki", "wire"},
	"client/device":        {},
	"client/status":        {},
	"client/join":          {},
	"client/intercept":     {},
	"client/names":         {},
	"client/resolver":      {"disk"},
	"client/sso":           {},
	"router/edge":          {"wire", "pki"},
	"router/exit":          {"wire"},
	"router/forward":       {"wire"},
	"router/link":          {"wire", "pki"},
	"router/lookup":        {},
	"router/home":          {"disk", "ops/config", "ops/health", "ops/metrics", "pki", "client/enroll"},
	"client/tun":           {},
	"client/tunneler":      {},
	"router/uplink":        {"wire"},
	"run/cli":              {"lang/advice", "ops", "tool", "client", "router"},
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
	below := modulePath(t) + "/internal/"
	for _, s := range sources(t) {
		uses, known := used[wingOf(s.pkg)]
		if !known {
			t.Errorf("%s: package %s is in none of the wings", s.path, s.pkg)
			continue
		}
		for _, spec := range s.file.Imports {
			target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), below)
			if ours && !mayImport(uses, s.pkg, target) {
				t.Errorf("%s: package %s must not import %s", s.path, s.pkg, target)
			}
		}
	}
}

// TestNobodyMayMoreThanItDoes looks for permissions that nobody uses: a package
// could take them up without a word.
func TestNobodyMayMoreThanItDoes(t *testing.T) {
	imports, below := map[string][]string{}, modulePath(t)+"/internal/"
	for _, s := range sources(t) {
		for _, spec := range s.file.Imports {
			if target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), below); ours {
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

// modulePath is what the module is called.
func modulePath(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return path
		}
	}
	t.Fatal("go.mod names no module")
	return ""
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
