package architecture

import (
	"go/ast"
	"testing"
)

// TestOneNameForErrors holds the log to one name for errors: who searches it for those of
// another name finds some and takes them for all.
func TestOneNameForErrors(t *testing.T) {
	named := 0
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || !logs(call) {
				return true
			}
			for _, arg := range call.Args {
				switch word, _ := arg.(*ast.BasicLit); {
				case word == nil:
				case word.Value == `"error"`:
					named++
				case word.Value == `"err"`:
					t.Errorf("%s logs an error as err", s.path)
				}
			}
			return true
		})
	}
	if named < 100 {
		t.Errorf("only %d lines with errors were found", named)
	}
}

// logs tells whether a call is one of a logger, as far as its name says.
func logs(call *ast.CallExpr) bool {
	selected, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	switch selected.Sel.Name {
	case "Debug", "Info", "Warn", "Error", "Log", "With":
		return true
	}
	return false
}
