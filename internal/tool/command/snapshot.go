package command

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/screen"
)

// snapshots are the copies of the store.
var snapshots = roll{
	path:    "/database/snapshots",
	columns: []column{{head: "name", path: "name"}, {head: "bytes", path: "size"}, {head: "time", path: "time"}, {head: "revision", path: "revision"}, {head: "scheduled", path: "scheduled"}},
	none:    "There are no snapshots; take one with: netkeep snapshot save",
}

func snapshotCommand(env Env) *cobra.Command {
	cmd := Parent(&cobra.Command{Use: "snapshot", Short: "Copy everything that a controller stores, and look after the copies."})
	list := &cobra.Command{Use: "list", Short: "List the copies on the controller's disk.", Args: Exactly(0)}
	output := outputFlag(list, formTable, formName)
	list.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		_, err := snapshots.write(cmd, s, *output)
		return err
	})
	cmd.AddCommand(list,
		&cobra.Command{Use: "save", Short: "Copy everything now, to the controller's disk.", Args: Exactly(0),
			RunE: with(env, func(cmd *cobra.Command, s *session, _ []string) error {
				defer s.Working("Copying", s.now)()
				var out struct {
					File string `json:"file"`
					Path string `json:"path"`
				}
				if err := s.Post(cmd.Context(), "/database/snapshot", nil, &out); err != nil {
					return err
				}
				s.Printf("%s\n", screen.Plain(out.File))
				s.Notef("It is on the machine of the controller %s, at %s. It holds no keys: keep a copy of the directory pki of the controller's data too.", s.Address(), screen.Plain(out.Path))
				return nil
			})},
		&cobra.Command{Use: "verify NAME", Short: "Read a copy from begin to end, and say whether it is whole.", Args: Exactly(1),
			RunE: with(env, func(cmd *cobra.Command, s *session, args []string) error {
				defer s.Working("Reading", s.now)()
				var out struct {
					Whole  bool   `json:"intact"`
					Reason string `json:"problem"`
				}
				if err := s.Post(cmd.Context(), snapshots.path+"/"+url.PathEscape(args[0])+"/verify", nil, &out); err != nil {
					return err
				}
				if !out.Whole {
					return fmt.Errorf("%s is damaged: %s; take another with netkeep snapshot save", args[0], out.Reason)
				}
				s.Printf("%s is whole\n", screen.Plain(args[0]))
				return nil
			})})
	return cmd
}
