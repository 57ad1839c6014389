package rest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/fault"
)

// TestEveryCodeHasAStatus holds the table of answers to the codes that there
// are: a code without a row could not be answered.
func TestEveryCodeHasAStatus(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../../lang/fault/fault.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		codes++
		if answer := answers[fault.Code(text)]; http.StatusText(answer.status) == "" || answer.status < 400 {
			t.Errorf("%s is answered with status %d", spec.Names[0].Name, answer.status)
		}
		return true
	})
	if codes != len(answers) || codes < 40 {
		t.Errorf("there are %d codes and %d answers", codes, len(answers))
	}
}
