package management

import (
	"net/http"

	"netkeep.internal/internal/policy/lint"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// lintOut is what a look over the network found.
type lintOut struct {
	Count  int       `json:"count" doc:"How many findings there are in all."`
	Checks []lintRow `json:"checks" doc:"All that is looked for, with what was found."`
}

type lintRow struct {
	Name   string        `json:"name" doc:"What is looked for."`
	Why    string        `json:"why" doc:"Why it matters."`
	Count  int           `json:"count" doc:"How many findings there are."`
	Listed []lintFinding `json:"listed" doc:"The first of them by name; 100 at most."`
}

type lintFinding struct {
	Kind    string `json:"kind" doc:"Kind of the record that the finding is about."`
	ID      string `json:"id" doc:"Id of the record."`
	Name    string `json:"name" doc:"What people call the record."`
	What    string `json:"what" doc:"What was found, in words that go on after the name."`
	Command string `json:"command" doc:"Command that mends it, for a shell."`
}

// mountLint offers to look the network over.
func mountLint(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/lint", Name: "lintNetwork", Tag: "informational",
		Doc:  "Look the network over for what was not meant or was forgotten: policies that give nobody anything, roles that nobody has, services that nobody may use, what is about to end. Each finding comes with the command that mends it.",
		Auth: rest.Admin, Need: "access:read",
	}, func(c *rest.Call, _ rest.None) (lintOut, error) {
		out := lintOut{Checks: []lintRow{}}
		for _, check := range lint.Run(c.Snap, s.Sessions.Now()) {
			row := lintRow{Name: check.Name, Why: check.Why, Count: check.Count, Listed: []lintFinding{}}
			for _, f := range check.Listed {
				row.Listed = append(row.Listed, lintFinding{f.Def.Name, f.ID, f.Name, f.What, f.Command})
			}
			out.Count += check.Count
			out.Checks = append(out.Checks, row)
		}
		return out, nil
	})
}
