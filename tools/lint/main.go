// Lint runs the analyses of staticcheck, of go vet and of nilness over the
// packages that it is given. They are one program, since each of them alone would
// load and type-check everything again.
package main

import (
	"os"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/nilness"
	"golang.org/x/tools/go/analysis/suite/vet"
	"honnef.co/go/tools/lintcmd"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

func main() {
	cmd := lintcmd.NewCommand("lint")
	cmd.ParseFlags(os.Args[1:])
	cmd.AddAnalyzers(simple.Analyzers...)
	cmd.AddAnalyzers(staticcheck.Analyzers...)
	cmd.AddAnalyzers(stylecheck.Analyzers...)
	cmd.AddAnalyzers(unused.Analyzer)
	cmd.AddBareAnalyzers(named(append(vet.Suite, nilness.Analyzer))...)
	cmd.Run()
}

// named has analyses report under their own names: what has another is not among
// the checks that lintcmd knows, and would be left out.
func named(all []*analysis.Analyzer) []*analysis.Analyzer {
	for _, a := range all {
		run := a.Run
		a.Run = func(pass *analysis.Pass) (any, error) {
			report := pass.Report
			pass.Report = func(d analysis.Diagnostic) {
				d.Category = ""
				report(d)
			}
			return run(pass)
		}
	}
	return all
}
