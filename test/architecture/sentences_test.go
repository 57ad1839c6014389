package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// matched are the places that go by the words of others, by file and function,
// with why they must: there is nothing else to go by.
var matched = map[string]string{
	"internal/client/remote/error.go Explain":              "crypto/tls keeps the type of the alerts that a peer sends to itself",
	"internal/data/store/etcdstore/etcdstore.go oversized": "gRPC gives what is too large the code of what is too much",
	"internal/data/store/etcdstore/lost.go betweenLeaders": "etcd has no code for a proposal that a leader drops because it hands over",
	"internal/data/store/etcdstore/log.go Check":           "lines of etcd's log are words alone, and it is about what of them is shown",
	"internal/data/store/etcdstore/log.go OnWrite":         "that a member has lost what it confirmed is said in words alone",
}

// matchers are functions that look for words in words.
var matchers = map[string][]string{
	"strings": {"Contains", "ContainsAny", "HasPrefix", "HasSuffix", "EqualFold", "Index", "LastIndex", "Count", "Compare", "Cut", "CutPrefix", "CutSuffix", "TrimPrefix", "TrimSuffix", "Split"},
	"bytes":   {"Contains", "HasPrefix", "HasSuffix", "EqualFold", "Index", "Count", "Cut", "CutPrefix", "CutSuffix", "TrimPrefix", "TrimSuffix"},
	"regexp":  {"Match", "MatchString"},
}

// expressions are methods of regular expressions.
var expressions = []string{"MatchString", "FindString", "FindStringSubmatch", "FindAllString", "Match", "Find"}

// spoken are fields that hold what is said to people.
var spoken = []string{"Message", "Reason", "Sentence", "Body"}

// listener looks for places in a file where somebody goes by words that are for
// people: those of errors, of refusals, and of frames that say why not.
type listener struct {
	words map[string]bool // constants and variables of the package with words
	said  map[string]bool // variables of a function that hold what is for people
	found map[string]bool // functions
	in    string
}

// listen returns the functions of a package that go by words.
func listen(files map[string]*ast.File) map[string]bool {
	l := &listener{words: map[string]bool{}, found: map[string]bool{}}
	for _, f := range files {
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok {
				l.declared(g)
			}
		}
	}
	for path, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				l.in, l.said = path+" "+fn.Name.Name, map[string]bool{}
				ast.Inspect(fn.Body, l.look)
			}
		}
	}
	return l.found
}

// declared takes note of words that have a name.
func (l *listener) declared(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, value := range v.Values {
			if i < len(v.Names) && sentence(value) {
				l.words[v.Names[i].Name] = true
			}
		}
	}
}

// sentence reports whether an expression is a text with a letter in it.
func sentence(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	text, err := strconv.Unquote(lit.Value)
	return err == nil && strings.ContainsFunc(text, unicode.IsLetter)
}

// wanted reports whether an expression may be words that somebody looks for: a
// literal without a letter is none.
func wanted(e ast.Expr) bool {
	_, literal := e.(*ast.BasicLit)
	return !literal || sentence(e)
}

// fixed reports whether an expression is words that stay the same.
func (l *listener) fixed(e ast.Expr) bool {
	name, ok := e.(*ast.Ident)
	return sentence(e) || ok && l.words[name.Name]
}

// people reports whether an expression has in it what is said to people.
func (l *listener) people(e ast.Node) bool {
	is := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && (s.Sel.Name == "Error" && len(n.Args) == 0 || s.Sel.Name == "Sentence") {
				is = true
			}
			if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "len" {
				return false // how long it is may be asked
			}
		case *ast.SelectorExpr:
			is = is || slices.Contains(spoken, n.Sel.Name) && !packaged(n)
		case *ast.Ident:
			is = is || l.said[n.Name]
		case *ast.FuncLit:
			return false
		}
		return !is
	})
	return is
}

// packaged reports whether a selector may be of a package, whose names are not
// fields.
func packaged(s *ast.SelectorExpr) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && slices.Contains([]string{"message", "cipher", "http", "stream"}, x.Name)
}

func (l *listener) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		l.assigned(n)
	case *ast.CallExpr:
		if l.matches(n) {
			l.found[l.in] = true
		}
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			if l.people(n.X) && l.fixed(n.Y) || l.people(n.Y) && l.fixed(n.X) {
				l.found[l.in] = true
			}
		}
	case *ast.SwitchStmt:
		if n.Tag != nil && l.people(n.Tag) && slices.ContainsFunc(n.Body.List, func(s ast.Stmt) bool { return slices.ContainsFunc(s.(*ast.CaseClause).List, l.fixed) }) {
			l.found[l.in] = true
		}
	}
	return true
}

// assigned follows what is said into variables.
func (l *listener) assigned(n *ast.AssignStmt) {
	for i, to := range n.Lhs {
		name, ok := to.(*ast.Ident)
		if !ok {
			continue
		}
		from := n.Rhs[0]
		if len(n.Rhs) == len(n.Lhs) {
			from = n.Rhs[i]
		}
		if textual(from) && l.people(from) {
			l.said[name.Name] = true
		}
	}
}

// textual reports whether an expression may be a text that was said: what other
// functions make of one is something else.
func textual(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return true
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "string"
	case *ast.SelectorExpr:
		x, named := f.X.(*ast.Ident)
		return f.Sel.Name == "Error" || named && (x.Name == "strings" || x.Name == "fmt" || x.Name == "bytes" || x.Name == "cmp")
	case *ast.ArrayType:
		return true
	}
	return false
}

// matches reports whether a call looks for words in what is said to people.
func (l *listener) matches(c *ast.CallExpr) bool {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || !slices.ContainsFunc(c.Args, func(e ast.Expr) bool { return l.people(e) }) {
		return false
	}
	if x, ok := f.X.(*ast.Ident); ok && slices.Contains(matchers[x.Name], f.Sel.Name) {
		return len(c.Args) < 2 || wanted(c.Args[0]) && wanted(c.Args[1])
	}
	return slices.Contains(expressions, f.Sel.Name)
}

// TestSentences has nobody go by the words of an error: they are for people, and
// change. What an error is, its type or its code says.
func TestSentences(t *testing.T) {
	root := filepath.Join("..", "..")
	packages := map[string]map[string]*ast.File{}
	for _, dir := range []string{"internal", "overlay", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			// Packages for tests look at words so that people get them.
			if err == nil && d.IsDir() && strings.HasSuffix(path, "test") {
				return fs.SkipDir
			}
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			in := filepath.Dir(path)
			if packages[in] == nil {
				packages[in] = map[string]*ast.File{}
			}
			packages[in][filepath.ToSlash(rel)] = f
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	met := map[string]bool{}
	for _, files := range packages {
		for place := range listen(files) {
			if met[place] = true; matched[place] == "" {
				t.Errorf("%s goes by words that are for people; go by a type or a code, which frames carry too", place)
			}
		}
	}
	for place := range matched {
		if !met[place] {
			t.Errorf("%s goes by no words; take it from the list", place)
		}
	}
}

// TestSentencesAreFound holds the test above to what it looks for.
func TestSentencesAreFound(t *testing.T) {
	for body, bad := range map[string]bool{
		`return strings.Contains(err.Error(), "nobody hosts")`:                                        true,
		`text := strings.TrimSpace(string(f.Body)); return strings.Contains(text, "no terminators")`:  true,
		`return err.Error() == "Invalid Session"`:                                                     true,
		`return err.Error() == known`:                                                                 true,
		`return refused.Reason != "x"`:                                                                true,
		`text := err.Error(); low := strings.ToLower(text); return strings.HasPrefix(low, "invalid")`: true,
		`return strings.EqualFold(e.Message, prefix)`:                                                 true,
		`return pattern.MatchString(err.Error())`:                                                     true,
		`b := []byte(err.Error()); return bytes.Contains(b, []byte("x"))`:                             true,
		`switch e.Message { case "a": return true }; return false`:                                    true,
		`switch err.Error() { case known: return true }; return false`:                                true,
		`_, rest, _ := strings.Cut(err.Error(), "refused: "); return rest != ""`:                      true,
		`func() { _ = strings.HasSuffix(err.Error(), "no") }(); return false`:                         true,
		`return strings.HasPrefix(string(f.Body), known)`:                                             true,

		`return errors.Is(err, errKnown)`:                                   false,
		`return e.Code == "NOT_FOUND"`:                                      false,
		`return err.Error() == before`:                                      false,
		`return e.Reason == ""`:                                             false,
		`text := strings.TrimSuffix(e.Message, "."); return text == before`: false,
		`return len(f.Body) == 4`:                                           false,
		`return strings.Contains(name, "nobody")`:                           false,
		`m := read(f.Body); return strings.HasPrefix(m.Name, "x")`:          false,
	} {
		src := fmt.Sprintf("package p\nconst known = \"some words\"\nfunc f(err error) bool {\n%s\n}\n", body)
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := listen(map[string]*ast.File{"p.go": f})["p.go f"]; got != bad {
			t.Errorf("%s: found %v, want %v", body, got, bad)
		}
	}
}
