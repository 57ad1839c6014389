package command

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/screen"
)

// reversal is what takes a change back.
type reversal struct {
	Entry     int64    `json:"entry"`
	Kind      string   `json:"kind"`
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Changes   []change `json:"changes"`
	Conflicts []struct {
		Field string `json:"field"`
		What  string `json:"what"`
	} `json:"conflicts"`
	Notes []string `json:"notes"`
}

func undoCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo ENTRY",
		Short: "Take back the change that an audit entry tells of.",
		Long: "Show what would take back the change that an audit entry tells of, as plan does, ask, and do\n" +
			"exactly that. What was changed again since, is gone, or is not kept by entries is in the way,\n" +
			"and is said by name; nothing is done then.",
		Example: "  netkeep history service payroll\n  netkeep undo 1234",
		Args:    Exactly(1),
	}
	yes, dry := yesFlag(cmd), dryFlag(cmd)
	save := cmd.Flags().String("save", "", "File to write the plan to, for netkeep apply --plan; nothing is changed.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		number, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || number < 1 {
			return Usagef("%q is no number of an audit entry; see: netkeep history KIND NAME", args[0])
		}
		if *output != formText && !*yes && !*dry && *save == "" {
			return Usagef("give --yes with -o %s: there is nobody to ask", *output)
		}
		var back reversal
		if err := s.Get(cmd.Context(), fmt.Sprintf("/audit-entries/%012d/undo", number), nil, &back); err != nil {
			return err
		}
		if err := s.inTheWay(back); err != nil {
			return err
		}
		p, err := s.change(cmd.Context(), back.Changes, true, "")
		if err != nil {
			return s.nearby(cmd.Context(), err, back.Changes)
		}
		looks := *dry || *save != ""
		if *output == formText {
			err = s.tell(p)
		} else if looks {
			err = s.value(*output, p)
		}
		for _, note := range back.Notes {
			s.Notef("%s", screen.Plain(note))
		}
		switch {
		case err != nil:
			return err
		case *save != "":
			return s.savePlan(*save, p, back.Changes)
		case looks:
			return nil
		}
		if !*yes {
			if err := s.sure("Make these changes?"); err != nil {
				return err
			}
		}
		return s.apply(cmd.Context(), back.Changes, p.Digest, *output)
	})
	return cmd
}

// inTheWay says what keeps a change from being taken back.
func (s *session) inTheWay(back reversal) error {
	if len(back.Conflicts) == 0 {
		return nil
	}
	what := strings.ReplaceAll(back.Kind, "-", " ") + " " + screen.Plain(back.Name)
	var reasons []string
	for _, c := range back.Conflicts {
		reasons = append(reasons, strings.TrimSpace(screen.Plain(c.Field)+" "+screen.Plain(c.What)))
	}
	return fmt.Errorf("entry %d cannot be taken back, and nothing was done: of %s, %s", back.Entry, what, strings.Join(reasons, "; "))
}
