package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
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

// maxReversals is how many entries of one request are taken back together.
const maxReversals = 500

func undoCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo ENTRY",
		Short: "Take back the change that an audit entry tells of.",
		Long: "Show what would take back the change that an audit entry tells of, as plan does, ask, and do\n" +
			"exactly that. What was changed again since, is gone, or is not kept by entries is in the way,\n" +
			"and is said by name; nothing is done then. With --request it is all that the same request did.",
		Example: "  netkeep history service payroll\n  netkeep undo 1234\n  netkeep undo 1234 --request",
		Args:    Exactly(1),
	}
	yes, dry := yesFlag(cmd), dryFlag(cmd)
	overrideFlag(cmd)
	save := cmd.Flags().String("save", "", "File to write the plan to, for netkeep apply --plan; nothing is changed.")
	whole := cmd.Flags().Bool("request", false, "Take back all that the same request did, such as what one netkeep apply changed.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		number, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil || number < 1 {
			return Usagef("%q is no number of an audit entry; see: netkeep history KIND NAME", args[0])
		}
		if *output != formText && !*yes && !*dry && *save == "" {
			return Usagef("give --yes with -o %s: there is nobody to ask", *output)
		}
		numbers := []int64{number}
		if *whole {
			if numbers, err = s.together(cmd.Context(), number); err != nil {
				return err
			}
		}
		back, err := s.reverse(cmd.Context(), numbers)
		if err != nil {
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

// together are the entries of changes that the request made which an entry is of, the
// last first.
func (s *session) together(ctx context.Context, number int64) (numbers []int64, err error) {
	var e struct {
		Request string `json:"requestId"`
	}
	if err := s.Get(ctx, fmt.Sprintf("/audit-entries/%012d", number), nil, &e); err != nil {
		return nil, err
	}
	if e.Request == "" {
		return nil, fmt.Errorf("entry %d is of no request; leave --request out", number)
	}
	q := remote.List{
		Path: auditEntries.at(), Sort: "number desc", Limit: maxReversals + 1, Query: map[string][]string{"fields": {"number"}},
		Filter: "requestId = " + quoted(e.Request) + " and " + changesAlone,
	}
	_, err = s.Each(ctx, q, func(raw jsontext.Value) error {
		var e entry
		err := json.Unmarshal(raw, &e)
		numbers = append(numbers, e.Number)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(numbers) == 0:
		return nil, fmt.Errorf("the request of entry %d changed nothing", number)
	case len(numbers) > maxReversals:
		return nil, fmt.Errorf("the request of entry %d changed more than %d records; take them back one by one", number, maxReversals)
	}
	return numbers, nil
}

// reverse is what takes entries back, the last first.
func (s *session) reverse(ctx context.Context, numbers []int64) (all reversal, err error) {
	var ways []string
	for _, number := range numbers {
		var back reversal
		if err := s.Get(ctx, fmt.Sprintf("/audit-entries/%012d/undo", number), nil, &back); err != nil {
			return all, err
		}
		if err := s.inTheWay(back); err != nil {
			ways = append(ways, err.Error())
		}
		all.Changes = append(all.Changes, back.Changes...)
		for _, note := range back.Notes {
			if !slices.Contains(all.Notes, note) {
				all.Notes = append(all.Notes, note)
			}
		}
	}
	if len(ways) > 0 {
		return all, errors.New(strings.Join(ways, "\n"))
	}
	return all, nil
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
