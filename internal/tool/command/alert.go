package command

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/screen"
)

func alertsCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{Use: "alerts", Short: "List who is sent alerts, and how it stands with each.", Args: Exactly(0)}
	output := outputFlag(cmd, formTable, formName)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		_, err := receivers.write(cmd, s, *output)
		return err
	})
	cmd.AddCommand(&cobra.Command{
		Use: "test [NAME]", Short: "Send a test alert to one receiver, or to all, and say what came of it.", Args: between(0, 1),
		RunE: with(env, func(cmd *cobra.Command, s *session, args []string) error { return s.testAlerts(cmd, args) }),
	})
	return cmd
}

// receivers are those who are sent alerts.
var receivers = roll{
	path: "/alerts",
	columns: []column{
		{head: "name", path: "name"}, {head: "host", path: "host"}, {head: "delivered", path: "delivered"}, {head: "last", path: "deliveredAt"},
		{head: "dropped", path: "dropped"}, {head: "behind", path: "behind"}, {head: "error", path: "error"},
	},
	none: "Nobody is sent alerts: the settings of the controller have no alerts.",
}

// testAlerts has a controller send a test alert to a receiver, or to each.
func (s *session) testAlerts(cmd *cobra.Command, names []string) error {
	if len(names) == 0 {
		recs, err := receivers.read(cmd, s)
		if err != nil {
			return err
		}
		for _, rec := range recs {
			names = append(names, rec.text("name"))
		}
		if len(names) == 0 {
			return errors.New("nobody is sent alerts: the settings of the controller have no alerts")
		}
	}
	failed := 0
	for _, name := range names {
		var out struct {
			Taken  bool   `json:"taken"`
			Answer string `json:"answer"`
			Error  string `json:"error"`
			Took   int64  `json:"took"` // nanoseconds
		}
		if err := s.Post(cmd.Context(), receivers.path+"/"+url.PathEscape(name)+"/test", nil, &out); err != nil {
			return err
		}
		if !out.Taken {
			failed++
			s.Printf("%s did not take it: %s\n", screen.Plain(name), screen.Plain(out.Error))
			continue
		}
		s.Printf("%s took it in %s", screen.Plain(name), time.Duration(out.Took).Round(time.Millisecond))
		if out.Answer != "" {
			s.Printf(" and said: %s", screen.Plain(out.Answer))
		}
		s.Printf("\n")
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d did not take the alert", failed, len(names))
	}
	return nil
}
