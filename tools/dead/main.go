// Dead looks for functions that nothing reaches but tests, in the module that
// it is run in. What tests need belongs into packages of tests, of which it says
// nothing; what package overlay offers to others is reached by them.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// windows are functions that tests of a whole program look into it by, and that
// cannot be anywhere else.
var windows = []string{}

// elsewhere are files of what other systems alone use, and tests show here.
var elsewhere = []string{"internal/client/tun/wire_packets.go", "internal/client/resolver/folder.go"}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() (err error) {
	// A program of somebody else has to be inside the module to be analysed.
	dir, err := os.MkdirTemp("bin", "outside")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	module, err := output("go", "list", "-m")
	if err != nil {
		return err
	}
	if err := outside(filepath.Join(dir, "main.go"), strings.TrimSpace(module)); err != nil {
		return err
	}
	out, err := output("go", "tool", "-modfile=tools/go.mod", "deadcode", "./...")
	if err != nil {
		return err
	}
	return judge(strings.Split(strings.TrimSpace(out), "\n"))
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return string(out), err
}

// outside writes a program that uses all that package overlay offers.
func outside(file, module string) error {
	offers, err := offered("overlay")
	if err != nil {
		return err
	}
	text := fmt.Sprintf("package main\n\nimport (\n\t\"fmt\"\n\n\t%q\n)\n\nfunc main() {\n\tfmt.Println(\n", module+"/overlay")
	for _, offer := range offers {
		text += "\t\t" + offer + ",\n"
	}
	return os.WriteFile(file, []byte(text+"\t)\n}\n"), 0o600)
}

// offered are the functions of a package, and a value of each type that has
// methods, as others write them.
func offered(dir string) (all []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.IsExported() {
				all = append(all, of(file.Name.Name, f))
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("package %s offers nothing", dir)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// of is a function, or a value of the type that a method is of. RTA takes all
// methods of what becomes an interface for called.
func of(pkg string, f *ast.FuncDecl) string {
	if f.Recv == nil {
		return pkg + "." + f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok && id.IsExported() {
		return "new(" + pkg + "." + id.Name + ")"
	}
	return "nil" // others get it as an interface
}

// judge fails for each line that is neither of a test, nor a window, nor of other
// systems, and for windows that are none.
func judge(lines []string) error {
	left := slices.Clone(windows)
	var dead []string
	for _, line := range lines {
		where, name, ok := strings.Cut(line, ": unreachable func: ")
		file, _, _ := strings.Cut(where, ":")
		dir := filepath.ToSlash(filepath.Dir(file))
		if !ok || dir == "test" || strings.HasPrefix(dir, "test/") || strings.HasSuffix(dir, "test") {
			continue
		}
		if slices.Contains(elsewhere, filepath.ToSlash(file)) {
			continue
		}
		if i := slices.Index(left, dir+"."+name); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		dead = append(dead, line)
	}
	for _, name := range left {
		dead = append(dead, "tools/dead/main.go: "+name+" is not for tests alone")
	}
	if len(dead) == 0 {
		return nil
	}
	slices.Sort(dead)
	return fmt.Errorf("dead code:\n%s", strings.Join(dead, "\n"))
}
