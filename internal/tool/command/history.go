package command

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/tool/screen"
)

var auditEntries = noun{model.AuditEntries.Def}

// entry is one of the audit log.
type entry struct {
	Number     int64          `json:"number"`
	When       time.Time      `json:"createdAt"`
	Event      string         `json:"event"`
	ActorKind  string         `json:"actorKind"`
	ActorName  string         `json:"actorName"`
	Operation  string         `json:"operation"`
	Address    string         `json:"address"`
	TargetKind string         `json:"targetKind"`
	TargetID   string         `json:"targetId"`
	TargetName string         `json:"targetName"`
	Before     jsontext.Value `json:"before"`
	After      jsontext.Value `json:"after"`
	Withheld   []string       `json:"withheld"`
}

func historyCommand(env Env) *cobra.Command {
	cmd := forEach(kind.Gets, env, historyOf, &cobra.Command{
		Use:     "history KIND NAME",
		Short:   "Show who changed a record, what and when.",
		Example: "  netkeep history service-policy payroll-staff\n  netkeep history identity bob --limit 5",
	})
	return cmd
}

// maxNamesakes is of how many records that had a name one after the other the history
// is shown.
const maxNamesakes = 20

func historyOf(env Env, n noun) *cobra.Command {
	if !n.Noted {
		return nil
	}
	cmd := &cobra.Command{
		Use:               n.Name + " NAME",
		Aliases:           n.others(),
		Short:             "Show who changed one of the " + strings.ReplaceAll(n.Path, "-", " ") + ", also if it is gone.",
		Args:              Exactly(1),
		ValidArgsFunction: completeNames(env, n),
	}
	limit := cmd.Flags().Int64("limit", 0, "How many changes at most, the latest first; all if 0.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		ids, err := s.everCalled(cmd.Context(), n, args[0])
		if err != nil {
			return err
		}
		q := remote.List{
			Path: auditEntries.at(), Sort: "number desc", Limit: *limit, Query: map[string][]string{},
			Filter: "targetKind = " + quoted(n.Name) + " and " + targets(ids) + " and " + changesAlone,
		}
		if *output != formText {
			return s.listed(cmd, auditEntries, q, nil, *output)
		}
		_, err = s.Each(cmd.Context(), q, func(raw jsontext.Value) error {
			var e entry
			if err := json.Unmarshal(raw, &e); err != nil {
				return err
			}
			s.tellEntry(e, len(ids) > 1)
			return nil
		})
		return err
	})
	return cmd
}

// changesAlone leaves out entries of what is no change, such as logins.
const changesAlone = `(event = "created" or event = "updated" or event = "deleted")`

// targets are entries of some records.
func targets(ids []string) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = "targetId = " + quoted(id)
	}
	return "(" + strings.Join(words, " or ") + ")"
}

// everCalled returns the ids of the records that have a name or id, or had it.
func (s *session) everCalled(ctx context.Context, n noun, word string) (ids []string, err error) {
	now, missing := s.find(ctx, n, word)
	if missing == nil {
		ids = append(ids, now.text("id"))
	}
	q := remote.List{
		Path: auditEntries.at(), Sort: "number desc", Query: map[string][]string{"fields": {"targetId"}},
		Filter: "targetKind = " + quoted(n.Name) + " and (targetName = " + quoted(word) + " or targetId = " + quoted(word) + ") and " + changesAlone,
	}
	_, err = s.Each(ctx, q, func(raw jsontext.Value) error {
		rec, err := readRecord(raw)
		if id := rec.text("targetId"); err == nil && !slices.Contains(ids, id) && len(ids) < maxNamesakes {
			ids = append(ids, id)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(ids) == 0:
		return nil, missing
	}
	return ids, nil
}

// who is whoever is behind an entry.
func (e entry) who() string {
	who := e.ActorName
	if who == "" {
		who = e.ActorKind
	}
	if e.ActorKind == "program" {
		who = "the controller (" + who + ")"
	}
	return who
}

// tellEntry says what an entry tells, and of which record if there are several.
func (s *session) tellEntry(e entry, several bool) {
	word := map[string]string{model.AuditCreated: "created", model.AuditDeleted: "deleted"}[e.Event]
	which := screen.Plain(e.TargetName)
	if several {
		which += " (" + screen.Plain(e.TargetID) + ")"
	}
	from := ""
	if e.Address != "" {
		from = " from " + e.Address
	}
	s.Printf("%s %s  %s  %s %s %s%s\n", s.mark(word), strconv.FormatInt(e.Number, 10), e.When.UTC().Format("2006-01-02 15:04:05Z"), screen.Plain(e.who()), e.Event, which, screen.Plain(from))
	if e.Event == model.AuditUpdated {
		for _, d := range e.differences() {
			s.Printf("    %s: %s -> %s\n", screen.Plain(d.name), shown(d.before), shown(d.after))
		}
	}
	if len(e.Withheld) > 0 {
		s.Printf("    %s\n", s.Faint("not shown: "+screen.Plain(strings.Join(e.Withheld, ", "))))
	}
}

// difference is a member that an entry has before, after, or both.
type difference struct {
	name          string
	before, after jsontext.Value
}

// differences are what an entry tells of a record, but for when it was changed.
func (e entry) differences() (all []difference) {
	before, names, _ := ordered(e.Before)
	after, more, _ := ordered(e.After)
	for _, name := range more {
		if _, had := before[name]; !had {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if name != "updatedAt" {
			all = append(all, difference{name, before[name], after[name]})
		}
	}
	return all
}

// differing is what differs between two moments.
type differing struct {
	FromEntry int64 `json:"fromEntry"`
	ToEntry   int64 `json:"toEntry"`
	Counts    struct {
		Created   int `json:"created"`
		Changed   int `json:"changed"`
		Unchanged int `json:"unchanged"`
		Deleted   int `json:"deleted"`
	} `json:"counts"`
	Records []struct {
		outcome
		Entries int       `json:"entries"`
		Entry   int64     `json:"entry"`
		Who     string    `json:"who"`
		When    time.Time `json:"when"`
	} `json:"records"`
	Access moves `json:"access"`
}

func diffCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff FROM [TO]",
		Short: "Show what changed between two moments, and who gained or lost which service.",
		Long: "Show which records differ between two moments, who changed them last, and which identities gained\n" +
			"or lost which services. A moment is " + momentHelp + ".\n" +
			"Without the second, it is now.",
		Example: "  netkeep diff 2h\n  netkeep diff 2026-01-31T08:00:00Z 2026-01-31T18:00:00Z",
		Args:    between(1, 2),
	}
	limit := cmd.Flags().Int("limit", 1000, "How many records, and how many who gained or lost something, to show at most; 1000 at most.")
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		query := url.Values{"limit": {strconv.Itoa(*limit)}}
		for i, name := range []string{"from", "to"}[:len(args)] {
			at, err := s.moment(args[i])
			if err != nil {
				return err
			}
			query.Set(name, at)
		}
		end := s.Working("Comparing", s.now)
		var raw jsontext.Value
		err := s.Get(cmd.Context(), "/difference", query, &raw)
		end()
		if err != nil {
			return err
		}
		return told(s, *output, raw, s.tellDifference)
	})
	return cmd
}

func (s *session) tellDifference(d differing) error {
	if d.Counts.Created+d.Counts.Changed+d.Counts.Deleted == 0 {
		s.Printf("Nothing is different.\n")
		return nil
	}
	for _, r := range d.Records {
		s.tellOutcome(r.outcome, fmt.Sprintf("  %s", s.Faint(fmt.Sprintf("(%s, %s, entry %d)", screen.Plain(r.Who), r.When.UTC().Format("2006-01-02 15:04:05Z"), r.Entry))))
	}
	if n := d.Counts.Created + d.Counts.Changed + d.Counts.Deleted; n > len(d.Records) {
		s.Printf("… and %d more\n", n-len(d.Records))
	}
	s.Printf("\n%d created, %d changed, %d deleted between entries %d and %d.\n", d.Counts.Created, d.Counts.Changed, d.Counts.Deleted, d.FromEntry, d.ToEntry)
	if d.Access.Gained+d.Access.Lost == 0 {
		s.Printf("Nobody gained or lost a service.\n")
		return nil
	}
	return s.tellMoves(d.Access, "gained", "lost")
}
