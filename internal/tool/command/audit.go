package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

func auditCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: "audit", Short: "Check that the log of what happened is as it was written."})
	cmd.AddCommand(&cobra.Command{
		Use:   "verify",
		Short: "Read the whole audit log, and say which entries are missing or altered.",
		Args:  Exactly(0),
		RunE: with(env, func(cmd *cobra.Command, s *session, _ []string) error {
			end := s.Working("Reading", s.now)
			var out verdict
			err := s.Get(cmd.Context(), "/audit-verification", nil, &out)
			end()
			if err != nil {
				return err
			}
			return s.tellAudit(out)
		}),
	})
	return cmd
}

// verdict is what a controller says of the audit log.
type verdict struct {
	Intact  bool   `json:"intact"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Digest  string `json:"digest"`
	Entries int64  `json:"entries"`
	Flaws   []struct {
		First int64  `json:"first"`
		Last  int64  `json:"last"`
		What  string `json:"what"`
	} `json:"flaws"`
	More bool `json:"more"`
}

func (s *session) tellAudit(v verdict) error {
	if v.Intact {
		s.Printf("The audit log is whole: entries %d to %d, the last with digest %s\n", v.First, v.Last, v.Digest)
		return nil
	}
	for _, f := range v.Flaws {
		which := fmt.Sprintf("entry %d is", f.First)
		if f.Last > f.First {
			which = fmt.Sprintf("entries %d to %d are", f.First, f.Last)
		}
		s.Printf("%s %s\n", which, f.What)
	}
	if v.More {
		s.Printf("and there are more\n")
	}
	return fmt.Errorf("the audit log is not as it was written; the entries around these tell when that may have been: netkeep list audit-entries --filter 'number >= %d' --limit 20", max(1, v.Flaws[0].First-10))
}
