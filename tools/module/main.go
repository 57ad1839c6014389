// Module gives the Go modules of this repository another path: it rewrites the
// module's own file, those of the modules below it, and what their sources
// import. Nothing else names the path.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

func main() {
	dir := flag.String("in", ".", "directory of the module")
	flag.Parse()
	if err := run(*dir, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "module:", err)
		os.Exit(1)
	}
}

func run(dir, to string) error {
	if to == "" {
		return errors.New("say which path the module gets: make module MODULE=example.com/netkeep")
	}
	if err := module.CheckPath(to); err != nil {
		return fmt.Errorf("%w; Go fetches only modules whose path begins with a name that has a dot, such as example.com/netkeep", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	from := modfile.ModulePath(text)
	if from == "" {
		return fmt.Errorf("%s names no module", filepath.Join(dir, "go.mod"))
	}
	changed, err := rename{from, to}.all(dir)
	if err != nil {
		return err
	}
	for path, text := range changed {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("The module %s is %s now, in %d files.\n", from, to, len(changed))
	return nil
}

// rename gives what is below one path another.
type rename struct{ from, to string }

// path is a path under its new name, and whether it has one.
func (r rename) path(p string) (string, bool) {
	if p == r.from {
		return r.to, true
	}
	rest, below := strings.CutPrefix(p, r.from+"/")
	if !below {
		return p, false
	}
	return r.to + "/" + rest, true
}

// all returns what files become that name the module. Nothing is written before
// everything could be read.
func (r rename) all(dir string) (map[string][]byte, error) {
	changed := map[string][]byte{}
	return changed, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != dir && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir // git's, or a tool's
			}
			return nil
		}
		var edit func(path string, text []byte) ([]byte, error)
		switch filepath.Ext(path) {
		case ".go":
			edit = r.source
		case ".mod":
			edit = r.module
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		after, err := edit(path, text)
		if err == nil && !bytes.Equal(after, text) {
			changed[path] = after
		}
		return err
	})
}

// source renames what a Go file imports, and puts imports in order again.
func (r rename) source(path string, text []byte) ([]byte, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var out []byte
	at := 0
	ast.Inspect(f, func(n ast.Node) bool {
		spec, is := n.(*ast.ImportSpec)
		if !is {
			return true
		}
		old, err := strconv.Unquote(spec.Path.Value)
		if to, ours := r.path(old); err == nil && ours {
			begin, end := files.Position(spec.Path.Pos()).Offset, files.Position(spec.Path.End()).Offset
			out = append(append(out, text[at:begin]...), strconv.Quote(to)...)
			at = end
		}
		return false
	})
	if at == 0 {
		return text, nil
	}
	return format.Source(append(out, text[at:]...))
}

// module renames what a module's file says: itself, and what it needs.
func (r rename) module(path string, text []byte) ([]byte, error) {
	f, err := modfile.ParseLax(path, text, nil)
	if err != nil {
		return nil, err
	}
	some := false
	line := func(l *modfile.Line) {
		for i, word := range l.Token {
			if to, ours := r.path(word); ours {
				l.Token[i], some = to, true
			}
		}
	}
	for _, stmt := range f.Syntax.Stmt {
		switch s := stmt.(type) {
		case *modfile.Line:
			line(s)
		case *modfile.LineBlock:
			for _, l := range s.Line {
				line(l)
			}
		}
	}
	if !some {
		return text, nil
	}
	return modfile.Format(f.Syntax), nil
}
