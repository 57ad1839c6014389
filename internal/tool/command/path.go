package command

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/tool/screen"
)

// paths is which ways the traffic of an identity to a service may take.
type paths struct {
	Identity string   `json:"identity"`
	Service  string   `json:"service"`
	Strategy string   `json:"terminatorStrategy"`
	Allowed  bool     `json:"allowed"`
	Missing  []string `json:"missing"`
	Ways     []way    `json:"ways"`
	More     int      `json:"more"`
}

// way is the one from an edge router.
type way struct {
	Router       string `json:"router"`
	Problem      string `json:"problem"`
	Hosts        int    `json:"hosts"`
	TerminatorID string `json:"terminatorId"`
	Address      string `json:"address"`
	Cost         int64  `json:"cost"`
	Hops         []struct {
		Router        string         `json:"router"`
		LinkID        string         `json:"linkId"`
		Cost          int64          `json:"linkCost"`
		SourceLatency jsontext.Value `json:"sourceLatency"`
		DestLatency   jsontext.Value `json:"destLatency"`
	} `json:"hops"`
}

func tracePathCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace-path IDENTITY SERVICE",
		Short: "Show which way the traffic of an identity to a service takes, or why it takes none.",
		Long: "Show for every edge router that the identity may reach the service through which host would\n" +
			"be chosen, and over which routers and links the path leads. Nothing is dialled.",
		Example:           "  netkeep trace-path bob wiki",
		Args:              Exactly(2),
		ValidArgsFunction: completeBoth(env),
	}
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		identity, service, err := s.both(cmd.Context(), args)
		if err != nil {
			return err
		}
		var raw jsontext.Value
		if err := s.Get(cmd.Context(), fabricRoot+"/paths/"+identity+"/"+service, nil, &raw); err != nil {
			return err
		}
		return told(s, *output, raw, s.paths)
	})
	return cmd
}

func (s *session) paths(p paths) error {
	can := s.Bad("cannot")
	if p.Allowed {
		can = s.Good("can")
	}
	s.Printf("%s %s use %s.\n", screen.Plain(p.Identity), can, screen.Plain(p.Service))
	for _, missing := range p.Missing {
		s.Printf("- %s\n", screen.Plain(missing))
	}
	if !p.Allowed {
		s.Printf("What would let it: netkeep explain %s %s\n", screen.Plain(p.Identity), screen.Plain(p.Service))
	}
	for _, w := range p.Ways {
		s.Printf("\nFrom %s", s.Strong(screen.Plain(w.Router)))
		if w.Problem != "" {
			s.Printf(": %s\n", screen.Plain(w.Problem))
			continue
		}
		s.Printf(" to %s, at a cost of %d; ", screen.Plain(w.Address), w.Cost)
		if w.Hosts == 1 {
			s.Printf("it is the only host.\n")
		} else {
			s.Printf("one of %d hosts, by %s.\n", w.Hosts, screen.Plain(p.Strategy))
		}
		if err := s.Write(w.table()); err != nil {
			return err
		}
	}
	if p.More > 0 {
		s.Printf("\nThere are %d more edge routers.\n", p.More)
	}
	return nil
}

// table is the routers on a way, with the links between them.
func (w way) table() screen.Table {
	t := screen.Table{Heads: []string{"router", "latency", "other end", "cost", "over link"}}
	for i, hop := range w.Hops {
		row := []string{hop.Router, "", "", "", ""}
		if i > 0 {
			row = []string{hop.Router, sayLatency(hop.SourceLatency), sayLatency(hop.DestLatency), fmt.Sprint(hop.Cost), hop.LinkID}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
