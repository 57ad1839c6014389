package command

import (
	"strings"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/screen"
)

// linted is what a look over the network found.
type linted struct {
	Count  int `json:"count"`
	Checks []struct {
		Name   string `json:"name"`
		Why    string `json:"why"`
		Count  int    `json:"count"`
		Listed []struct {
			Kind    string `json:"kind"`
			ID      string `json:"id"`
			Name    string `json:"name"`
			What    string `json:"what"`
			Command string `json:"command"`
		} `json:"listed"`
	} `json:"checks"`
}

func lintCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Look a network over for what was not meant or was forgotten.",
		Long: "Look a network over for what was not meant or was forgotten: policies that give nobody\n" +
			"anything, roles that nobody has, services that nobody may use, what is about to end, and more.\n" +
			"Each finding comes with the command that mends it: read it before you run it, for what to do\n" +
			"about a finding is yours to decide. With --strict the exit code is 1 if there is any.",
		Example: "  netkeep lint\n  netkeep lint --strict -o json",
		Args:    Exactly(0),
	}
	strict := cmd.Flags().Bool("strict", false, "End with exit code 1 if anything is found.")
	only := cmd.Flags().Bool("commands", false, "Print the commands alone, a line each.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		var all linted
		if err := s.Get(cmd.Context(), "/lint", nil, &all); err != nil {
			return err
		}
		switch {
		case *only:
			s.lintCommands(all)
		case *output != formText:
			if err := s.value(*output, all); err != nil {
				return err
			}
		default:
			s.tellLint(all)
		}
		if *strict && all.Count > 0 {
			return errFound
		}
		return nil
	})
	return cmd
}

func (s *session) lintCommands(all linted) {
	for _, c := range all.Checks {
		for _, f := range c.Listed {
			s.Printf("%s\n", screen.Plain(f.Command))
		}
	}
}

// tellLint says what was found, by what was looked for.
func (s *session) tellLint(all linted) {
	if all.Count == 0 {
		s.Printf("Nothing was found.\n")
		return
	}
	for _, c := range all.Checks {
		if c.Count == 0 {
			continue
		}
		s.Printf("%s %s\n", s.Strong(screen.Plain(c.Name)+":"), s.Flow(screen.Plain(c.Why), 2))
		for _, f := range c.Listed {
			s.Printf("  %s %s %s\n    %s\n", strings.ReplaceAll(screen.Plain(f.Kind), "-", " "), screen.Plain(f.Name), s.Flow(screen.Plain(f.What), 4), screen.Plain(f.Command))
		}
		if more := c.Count - len(c.Listed); more > 0 {
			s.Printf("  and %d more\n", more)
		}
		s.Printf("\n")
	}
	s.Printf("%s\n", count(int64(all.Count), "finding", "findings"))
}
