package command

import (
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/screen"
)

const clusterMembers = "/cluster/members"

func clusterCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: "cluster", Short: "Look after the controllers of a network."})
	list := &cobra.Command{Use: "members", Short: "List the controllers of a network that share its store.", Args: Exactly(0)}
	output := outputFlag(list, formTable, formName)
	list.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error { return s.members(cmd, *output) })
	cmd.AddCommand(list,
		&cobra.Command{Use: "invite", Short: "Print a token with which one controller may join within an hour.", Args: Exactly(0),
			RunE: with(env, func(cmd *cobra.Command, s *session, _ []string) error {
				var out struct {
					Token     string    `json:"token"`
					ExpiresAt time.Time `json:"expiresAt"`
				}
				if err := s.Post(cmd.Context(), "/cluster/invitations", nil, &out); err != nil {
					return err
				}
				s.Printf("%s\n", screen.Plain(out.Token))
				s.Notef("It is a secret, good for one controller until %s. On the new machine:\n"+
					"  netkeep run --data DIR --listen HOST:1280 --cluster-listen HOST:1282 --join TOKEN", out.ExpiresAt.Local().Format(time.TimeOnly))
				return nil
			})},
		&cobra.Command{Use: "promote CONTROLLER", Short: "Give a controller a vote that has none.", Args: Exactly(1),
			RunE: with(env, func(cmd *cobra.Command, s *session, args []string) error {
				if err := s.Post(cmd.Context(), clusterMembers+"/"+url.PathEscape(args[0])+"/promote", nil, nil); err != nil {
					return err
				}
				s.Printf("%s has a vote\n", screen.Plain(args[0]))
				return nil
			})},
		&cobra.Command{Use: "remove CONTROLLER", Short: "Take a controller out of the network for good.", Args: Exactly(1),
			RunE: with(env, func(cmd *cobra.Command, s *session, args []string) error {
				if err := s.do(cmd.Context(), http.MethodDelete, clusterMembers+"/"+url.PathEscape(args[0]), nil, nil); err != nil {
					return err
				}
				s.Printf("%s was removed\n", screen.Plain(args[0]))
				s.Notef("It has the keys of the network still: empty its data directory. It cannot come back with what is in it.")
				return nil
			})})
	return cmd
}

// members are the controllers that share a store.
var members = roll{
	path: clusterMembers,
	columns: []column{
		{head: "name", path: "name"}, {head: "address", path: "address"}, {head: "vote", path: "vote"}, {head: "leader", path: "leader"}, {head: "online", path: "isOnline"},
		{head: "version", path: "version"}, {head: "behind", path: "behind"}, {head: "size", path: "storeSize"}, {head: "routers", path: "routers"}, {head: "keys", path: "keyGeneration"}, {head: "seen", path: "lastSeenAt"},
	},
	none: "The controller keeps its store alone: nobody can join until it runs with --cluster-listen.",
}

func (s *session) members(cmd *cobra.Command, form string) error {
	s.learns = true // who looks at them will want to go on at the others
	recs, err := members.write(cmd, s, form)
	if err != nil {
		return err
	}
	voters := 0
	for _, rec := range recs {
		if rec.text("vote") == "true" {
			voters++
		}
	}
	if voters == 2 {
		s.Notef("Two controllers survive the loss of neither: add a third with netkeep cluster invite.")
	}
	return nil
}
