package command

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/tool/screen"
)

var grants = noun{model.Grants.Def}

// grantCommand gives an identity a role attribute for a time.
func grantCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "grant IDENTITY ATTRIBUTE",
		Short:   "Give an identity a role attribute for a time: what rests on it ends by itself.",
		Example: "  netkeep grant bob finance --for 4h --reason \"quarter end\"\n  netkeep grant bob finance --from 2026-01-31T08:00:00Z --for 2d --reason \"audit\"",
		Args:    Exactly(2), ValidArgsFunction: completeNames(env, identities),
	}
	lasts := cmd.Flags().String("for", "", "How long it lasts, as in 90m or 2d.")
	until := cmd.Flags().String("until", "", "When it ends, as in 2026-01-31T18:00:00Z or +4h, in the place of --for.")
	from := cmd.Flags().String("from", "", "When it begins, as in 2026-01-31T08:00:00Z or +2h; now if not given.")
	reason := cmd.Flags().String("reason", "", "What it is for, in words.")
	overrideFlag(cmd)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		attribute := strings.TrimPrefix(args[1], "#") // as policies write it
		body := map[string]any{"attribute": attribute, "reason": *reason}
		begin := s.now()
		if *from != "" {
			at, err := s.ahead(*from)
			if err != nil {
				return Usagef("--from must be a time as in 2026-01-31T08:00:00Z, or how long from now as in +2h")
			}
			body["validFrom"], begin = at, at
		}
		end, err := s.grantEnd(begin, *lasts, *until)
		switch {
		case err != nil:
			return err
		case *reason == "":
			return Usagef("--reason must say what it is for: whoever asks later should not have to guess")
		}
		body["validUntil"] = end
		if body["identityId"], err = s.idOf(cmd.Context(), identities, args[0]); err != nil {
			return err
		}
		body["name"] = fmt.Sprintf("%.100s %.100s %s", args[0], attribute, s.now().UTC().Format("2006-01-02T15:04:05.000Z"))
		if err := s.Post(cmd.Context(), "/"+grants.Path, body, nil); err != nil {
			return err
		}
		from := ""
		if begin.After(s.now()) {
			from = " from " + begin.UTC().Format(time.RFC3339)
		}
		s.Printf("%s has %s%s until %s.\n", screen.Plain(args[0]), screen.Plain(attribute), from, end.UTC().Format(time.RFC3339))
		return nil
	})
	return cmd
}

// grantEnd is when a grant ends that begins at a moment.
func (s *session) grantEnd(begin time.Time, lasts, until string) (time.Time, error) {
	if (lasts == "") == (until == "") {
		return time.Time{}, Usagef("say when it ends by --for, as in --for 4h, or by --until")
	}
	if until != "" {
		end, err := s.ahead(until)
		if err != nil {
			err = Usagef("--until must be a time as in 2026-01-31T18:00:00Z, or how long from now as in +4h")
		}
		return end, err
	}
	d, err := longAgo(lasts)
	if err != nil || d <= 0 {
		return time.Time{}, Usagef("--for must be a length of time as in 90m or 2d")
	}
	return begin.Add(d).UTC().Truncate(time.Millisecond), nil
}

// ahead reads a time, or how long from now it is.
func (s *session) ahead(text string) (time.Time, error) {
	if in, ok := strings.CutPrefix(text, "+"); ok {
		d, err := longAgo(in)
		return s.now().Add(d).UTC().Truncate(time.Millisecond), err
	}
	at, err := time.Parse(time.RFC3339, text)
	return at.UTC(), err
}

// endsBySelf reports whether records of a kind have an end.
func (n noun) endsBySelf() bool {
	return n.Field("validUntil") != nil && n.Field("standing") != nil && n.Verbs&kind.Creates != 0
}

// expiringFlag lets a list be asked for what ends soon.
func expiringFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("expiring", "", "Only those that end within this time, as in 24h or 7d, and are not over.")
}

// expiring adds to a filter that only what ends soon is wanted.
func (s *session) expiring(l *listing, within string) error {
	if within == "" {
		return nil
	}
	d, err := longAgo(within)
	if err != nil || d <= 0 {
		return Usagef("--expiring must be a length of time as in 24h or 7d")
	}
	filter := `standing != "over" and validUntil != null and validUntil < datetime(` + s.now().Add(d).UTC().Format(time.RFC3339) + `)`
	if l.filter != "" {
		filter = "(" + l.filter + ") and " + filter
	}
	l.filter, l.sort = filter, cmp.Or(l.sort, "validUntil")
	return nil
}
