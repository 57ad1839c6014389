package command

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/ops/archive"
)

func auditCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: "audit", Short: "Check that the log of what happened is as it was written."})
	var dir string
	var offline bool
	verify := &cobra.Command{
		Use:   "verify",
		Short: "Read the whole audit log, and say which entries are missing or altered.",
		Args:  Exactly(0),
	}
	verify.Flags().StringVar(&dir, "archive", "", "directory of a controller's archive, which is read first; the log has to go on from there")
	verify.Flags().BoolVar(&offline, "offline", false, "with --archive: read that alone and ask no controller")
	online := with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		end := s.Working("Reading", s.now)
		out, err := s.verify(cmd)
		var seam string
		if err == nil && dir != "" {
			seam, err = s.follows(cmd, out)
		}
		end()
		if err != nil {
			return err
		}
		if dir == "" {
			return s.tellAudit(out)
		}
		if err := tellArchive(cmd, dir, out.First, seam); err != nil {
			return err
		}
		return s.tellAudit(out)
	})
	verify.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case offline && dir == "":
			return fmt.Errorf("--offline needs the directory of an archive: --archive data/audit")
		case offline:
			return tellArchive(cmd, dir, 0, "")
		}
		return online(cmd, args)
	}
	cmd.AddCommand(verify)
	return cmd
}

// verify reads the log part by part: all of it in one request may take too long.
func (s *session) verify(cmd *cobra.Command) (all verdict, err error) {
	at := url.Values{"from": {"1"}}
	for {
		var part verdict
		if err := s.Get(cmd.Context(), "/audit-verification", at, &part); err != nil {
			return all, err
		}
		all = all.with(part)
		if part.Next == 0 {
			return all, nil
		}
		at = url.Values{"from": {fmt.Sprint(part.Next)}, "follows": {part.Follows}}
	}
}

// follows is the digest of the entry before the first that the store has.
func (s *session) follows(cmd *cobra.Command, v verdict) (string, error) {
	if v.First > v.Last {
		return v.Digest, nil
	}
	var list []struct {
		Previous string `json:"previous"`
	}
	err := s.Get(cmd.Context(), "/audit-entries", url.Values{"filter": {fmt.Sprintf("number = %d", v.First)}}, &list)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return list[0].Previous, nil
}

// tellArchive reads an archive and says whether it is whole, and whether the log goes on
// from there: with the entry first, which follows one of this digest.
func tellArchive(cmd *cobra.Command, dir string, first int64, digest string) error {
	v, err := archive.Verify(dir, first-1)
	if errors.Is(err, archive.ErrEmpty) && first == 1 {
		fmt.Fprintln(cmd.OutOrStdout(), "The archive is empty: nothing has left the store")
		return nil
	}
	if err != nil {
		return fmt.Errorf("the archive cannot be read: %w", err)
	}
	out := cmd.OutOrStdout()
	for _, text := range v.Unreadable {
		fmt.Fprintf(out, "a file cannot be read to its end: %s\n", text)
	}
	for _, f := range v.Flaws {
		fmt.Fprintf(out, "%s %s in the archive\n", span(f.From, f.To), f.What)
	}
	if v.More {
		fmt.Fprintln(out, "and there are more")
	}
	switch {
	case first > 1 && v.Last < first-1:
		fmt.Fprintf(out, "%s missing between the archive and the store\n", span(v.Last+1, first-1))
	case first > 1 && v.First < first && v.At != digest:
		fmt.Fprintf(out, "entry %d in the archive is not the one that the store goes on from\n", first-1)
	case len(v.Flaws)+len(v.Unreadable) == 0:
		fmt.Fprintf(out, "The archive is whole: entries %d to %d, the last with digest %s\n", v.First, v.Last, v.Digest)
		return nil
	}
	return fmt.Errorf("the archive is not as it was written, or not all of it is there; other controllers have archives of their own")
}

// span names entries from one to another, with the verb.
func span(from, to int64) string {
	if to > from {
		return fmt.Sprintf("entries %d to %d are", from, to)
	}
	return fmt.Sprintf("entry %d is", from)
}

// verdict is what a controller says of the audit log.
type verdict struct {
	Intact  bool   `json:"intact"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Digest  string `json:"digest"`
	Entries int64  `json:"entries"`
	Flaws   []flaw `json:"flaws"`
	More    bool   `json:"more"`
	Next    int64  `json:"next"`
	Follows string `json:"follows"`
}

type flaw struct {
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	What  string `json:"what"`
}

// with is what is said of a log of whose next part something else is said. It begins where
// it did when the first part was read.
func (v verdict) with(part verdict) verdict {
	if v.First > 0 {
		part.First = v.First
		part.Intact = v.Intact && part.Intact
		part.Entries += v.Entries
		part.Flaws = append(v.Flaws, part.Flaws...)
		part.More = v.More || part.More
	}
	return part
}

func (s *session) tellAudit(v verdict) error {
	if v.Intact {
		s.Printf("The audit log is whole: entries %d to %d, the last with digest %s\n", v.First, v.Last, v.Digest)
		return nil
	}
	for _, f := range v.Flaws {
		s.Printf("%s %s\n", span(f.First, f.Last), f.What)
	}
	if v.More {
		s.Printf("and there are more\n")
	}
	return fmt.Errorf("the audit log is not as it was written; the entries around these tell when that may have been: netkeep list audit-entries --filter 'number >= %d' --limit 20", max(1, v.Flaws[0].First-10))
}
