package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// stored are the places that look at what is stored as it is, though the write that
// ends a policy or a grant may be late, by file and function, with why they may: nobody
// is given anything by what they see there.
var stored = map[string]string{
	"internal/fabric/apisync/apisync.go recorded":            "in which form a router is told is a member of its record",
	"internal/fabric/apisync/ask.go onHeartbeat":             "API sessions do not end with a policy",
	"internal/fabric/asclient/asclient.go grant":             "a session that there is is looked at again when it is used",
	"internal/fabric/asclient/keep.go Keep":                  "whether a router was a client once",
	"internal/fabric/asclient/service.go version":            "when something was last written",
	"internal/fabric/authority.go authoritiesChanged":        "certificates",
	"internal/fabric/bears.go noteTakes":                     "whether there is something to write",
	"internal/fabric/circuit/dial.go dialerData":             "a name",
	"internal/fabric/circuit/learn.go recall":                "sessions are asked whether they are live, which goes by the clock",
	"internal/fabric/circuit/outcome.go note":                "names",
	"internal/fabric/circuit/outcome.go tell":                "names",
	"internal/fabric/circuit/vanish.go flows":                "terminators",
	"internal/fabric/control/admit.go enter":                 "whether a router is one",
	"internal/fabric/control/admit.go identify":              "whether a router is one",
	"internal/fabric/control/router.go Judges":               "whether a router is one",
	"internal/fabric/control/router.go Renew":                "whether a router is one",
	"internal/fabric/device.go report":                       "permit goes by the clock",
	"internal/fabric/link/link.go onJoined":                  "routers",
	"internal/fabric/link/link.go onLinks":                   "routers",
	"internal/fabric/link/link.go onVerify":                  "routers",
	"internal/fabric/link/peer.go greet":                     "routers",
	"internal/fabric/link/peer.go reconcile":                 "routers",
	"internal/fabric/link/peer.go tell":                      "routers",
	"internal/fabric/members.go membersChanged":              "controllers",
	"internal/fabric/members.go registerMembers":             "controllers",
	"internal/fabric/permit/permit.go Certain":               "Session goes by the clock",
	"internal/fabric/roster/care.go care":                    "controllers",
	"internal/fabric/roster/care.go count":                   "controllers",
	"internal/fabric/roster/care.go keepPlace":               "controllers",
	"internal/fabric/roster/care.go leadBack":                "controllers",
	"internal/fabric/roster/watch.go Run":                    "controllers",
	"internal/fabric/terminator/change.go owner":             "permit goes by the clock",
	"internal/fabric/terminator/recheck.go AskAll":           "which terminators a router is asked about",
	"internal/fabric/terminator/recheck.go ask":              "which terminators a router is asked about",
	"internal/fabric/terminator/terminator.go Create":        "whether there is something to write",
	"internal/policy/grant/enforce.go Enforce":               "which sessions are removed is written, by what is written",
	"internal/policy/grant/enforce.go expire":                "which sessions are asked whether they are live",
	"internal/policy/grant/enforce.go forget":                "which identities there are",
	"internal/policy/grant/enforce.go remove":                "which sessions are removed is written, by what is written",
	"internal/policy/grant/report.go keep":                   "what was reported before",
	"internal/policy/grant/report.go take":                   "which sessions are asked whether they stand",
	"internal/policy/validity/validity.go Run":               "what is late",
	"internal/policy/validity/validity.go Settle":            "what is late",
	"internal/policy/validity/validity.go View":              "what is late",
	"internal/policy/validity/validity.go wait":              "what is late",
	"internal/policy/validity/validity.go watch":             "what is late",
	"internal/web/api/client/session.go mountUpdates":        "when something was last written",
	"internal/web/api/fabric/talk_check.go check":            "routers",
	"internal/web/api/fabric/talk_check.go checkHosts":       "terminators",
	"internal/web/api/fabric/talk_check.go checkTerminators": "terminators",
	"internal/web/api/fabric/talk_events.go tellTerminator":  "terminators",
	"internal/web/api/fabric/talk_members.go peers":          "controllers",
	"internal/web/api/fabric/talk_events.go count":           "how many records there are",
	"internal/web/api/management/changes.go applyAsPlanned":  "what a write will meet",
	"internal/web/api/management/changes.go plan":            "what a write would meet",
	"internal/web/api/management/events.go subscribe":        "how far the log is",
	"internal/web/api/management/management.go Mount":        "a moment to come is made of it",
	"internal/web/rest/revision.go catchUp":                  "how far the log is",
	"internal/web/rest/revision.go tellRevision":             "how far the log is",
}

// timelies are the functions that make of what is stored what it is by the clock.
var timelies = map[string]bool{"Timely": true, "timely": true, "View": true, "Latest": true}

// TestTimely has everybody on the way from a question to an answer about who may do what
// go by the clock. What is stored may say for a while that somebody may who may not any
// more: the owner of memory is busy, the store is away, or another controller writes.
func TestTimely(t *testing.T) {
	root := filepath.Join("..", "..")
	used := map[string]bool{}
	for _, wing := range []string{"web", "fabric", "policy"} {
		err := filepath.WalkDir(filepath.Join(root, "internal", wing), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			for _, decl := range file.Decls {
				fn, is := decl.(*ast.FuncDecl)
				if !is || !looksAtStored(fn) {
					continue
				}
				place := filepath.ToSlash(name) + " " + fn.Name.Name
				if used[place] = true; stored[place] == "" {
					t.Errorf("%s looks at what is stored: ask for what it is by the clock (Call.Latest, Register.Timely, Keeper.View), or say here why it need not be", place)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for place := range stored {
		if !used[place] {
			t.Errorf("%s does not look at what is stored any more: take it off the list", place)
		}
	}
}

// looksAtStored reports whether a function takes a snapshot of a State and does not
// hand it at once to those who know the time.
func looksAtStored(fn *ast.FuncDecl) (found bool) {
	handed := map[ast.Node]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			// Also a method that is handed to somebody, as turnAll is.
			if sel, is := n.(*ast.SelectorExpr); is && sel.Sel.Name == "Snapshot" && isState(sel.X) && !handed[n] {
				found = true
			}
			return true
		}
		if sel, is := call.Fun.(*ast.SelectorExpr); is && timelies[sel.Sel.Name] {
			for _, arg := range call.Args {
				if inner, is := arg.(*ast.CallExpr); is {
					handed[inner.Fun] = true
				}
			}
		}
		return true
	})
	return found
}

// isState reports whether an expression is a State by its name, as all are called, and
// not the snapshot that a write has.
func isState(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "st"
	case *ast.SelectorExpr:
		return x.Sel.Name == "State" || x.Sel.Name == "state"
	}
	return false
}
