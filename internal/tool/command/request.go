package command

import (
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/tool/screen"
)

// requestsRoot is where requests for access are, for everybody.
const requestsRoot = clientRoot + "/access-requests"

var accessRequests = noun{model.AccessRequests.Def}

// asAnybody runs a command as whoever is logged in, or as the identity in a file.
func asAnybody(cmd *cobra.Command, env Env, work talking) {
	file := cmd.Flags().StringP("identity", "i", "", "File of an identity to ask as, in place of whoever is logged in.")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *file == "" {
			return with(env, work)(cmd, args)
		}
		s, leave, err := enterAs(cmd.Context(), env, *file)
		if err != nil {
			return err
		}
		defer leave()
		return work(cmd, s, args)
	}
}

func requestCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "request SERVICE",
		Short: "Ask for access to a service for a time.",
		Long: "Ask for access to a service for a time, by its name, though you may not see it. It must be one\n" +
			"that can be asked for. Those who decide on it are told by: netkeep requests. What was asked for\n" +
			"and is not needed any more, also if it was approved, is given back with --withdraw.",
		Example: "  netkeep request payroll --for 2h --reason 'quarter end'\n  netkeep request --withdraw 3kTzQ9",
		Args:    between(0, 1),
	}
	lasts := cmd.Flags().String("for", "", "For how long, from the moment of the approval, such as 30m, 2h or 1d.")
	reason := cmd.Flags().String("reason", "", "What it is for, for those who decide.")
	withdraw := cmd.Flags().String("withdraw", "", "Id of a request of yours to take back.")
	asAnybody(cmd, env, func(cmd *cobra.Command, s *session, args []string) error {
		if *withdraw != "" {
			if len(args) > 0 {
				return Usagef("there is no place for %q beside --withdraw", args[0])
			}
			if err := s.Post(cmd.Context(), requestsRoot+"/"+url.PathEscape(*withdraw)+"/withdraw", nil, nil); err != nil {
				return err
			}
			s.Printf("The request is withdrawn.\n")
			return nil
		}
		if len(args) == 0 {
			return Usagef("an argument is missing: %s", cmd.UseLine())
		}
		minutes, err := inMinutes(*lasts)
		if err != nil {
			return err
		}
		if *reason == "" {
			return Usagef("those who decide want to know what it is for: --reason")
		}
		var made struct {
			ID        string    `json:"id"`
			ExpiresAt time.Time `json:"expiresAt"`
		}
		body := map[string]any{"service": args[0], "minutes": minutes, "reason": *reason}
		if err := s.Post(cmd.Context(), requestsRoot, body, &made); err != nil {
			return err
		}
		s.Printf("Request %s waits until %s for somebody to decide; see: netkeep requests\n", screen.Plain(made.ID), made.ExpiresAt.Local().Format(time.DateTime))
		return nil
	})
	return cmd
}

// inMinutes reads how long something lasts, in whole minutes.
func inMinutes(text string) (int, error) {
	lasts, err := longAgo(text)
	if err != nil || lasts <= 0 || lasts%time.Minute != 0 {
		return 0, Usagef("--for %q is no time; it must be whole minutes, such as 30m, 2h or 1d", text)
	}
	return int(lasts / time.Minute), nil
}

// inHours writes minutes as people say them.
func inHours(minutes string) string {
	if n, err := strconv.Atoi(minutes); err == nil && n%60 == 0 {
		return strconv.Itoa(n/60) + "h"
	}
	return minutes + "m"
}

func requestsCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "requests",
		Short: "List your requests for access, and those that wait for you to decide.",
		Args:  Exactly(0),
	}
	output := outputFlag(cmd, formTable, formName, formCSV)
	asAnybody(cmd, env, func(cmd *cobra.Command, s *session, _ []string) error {
		q := remote.List{Path: requestsRoot}
		if *output == formJSON || *output == formYAML {
			return s.listed(cmd, accessRequests, q, nil, *output)
		}
		var recs []record
		total, err := s.Each(cmd.Context(), q, func(raw jsontext.Value) error {
			rec, err := readRecord(raw)
			if err != nil {
				return err
			}
			part := "asked"
			if string(rec.members["canDecide"]) == "true" {
				part = "decide"
			}
			rec.members["part"], _ = jsontext.AppendQuote(nil, part)
			rec.members["lasts"], _ = jsontext.AppendQuote(nil, inHours(string(rec.members["minutes"])))
			recs = append(recs, rec)
			return nil
		})
		if err != nil {
			return err
		}
		return s.show(accessRequests, []column{
			{head: "id", path: "id"}, {head: "you", path: "part"}, {head: "who", path: "identity.name"}, {head: "service", path: "service.name"}, {head: "for", path: "lasts"},
			{head: "standing", path: "standing"}, {head: "reason", path: "reason"}, {head: "answer", path: "answer"},
		}, recs, total, *output)
	})
	return cmd
}

func approveCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve a request of somebody else for access to a service.",
		Args:  Exactly(1),
	}
	asAnybody(cmd, env, func(cmd *cobra.Command, s *session, args []string) error {
		var out struct {
			Standing  string `json:"standing"`
			Approvals int    `json:"approvals"`
			Needed    int    `json:"needed"`
		}
		if err := s.Post(cmd.Context(), requestsRoot+"/"+url.PathEscape(args[0])+"/approve", nil, &out); err != nil {
			return err
		}
		if out.Standing == model.Pending {
			s.Printf("Approved by %d of %d; somebody else has to approve it as well.\n", out.Approvals, out.Needed)
			return nil
		}
		s.Printf("Approved.\n")
		return nil
	})
	return cmd
}

func denyCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "deny ID",
		Short: "Deny a request of somebody else for access to a service.",
		Args:  Exactly(1),
	}
	reason := cmd.Flags().String("reason", "", "Why, for who asked.")
	asAnybody(cmd, env, func(cmd *cobra.Command, s *session, args []string) error {
		if err := s.Post(cmd.Context(), requestsRoot+"/"+url.PathEscape(args[0])+"/deny", map[string]string{"answer": *reason}, nil); err != nil {
			return err
		}
		s.Printf("Denied.\n")
		return nil
	})
	return cmd
}
