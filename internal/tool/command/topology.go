package command

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/screen"
)

// ref is another record in an answer.
type ref struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// topology is the routers, what is between them and where services are hosted.
type topology struct {
	Routers []topologyRouter `json:"routers"`
	Links   []struct {
		ID            string         `json:"id"`
		Source        ref            `json:"sourceRouter"`
		Dest          ref            `json:"destRouter"`
		SourceLatency jsontext.Value `json:"sourceLatency"`
		DestLatency   jsontext.Value `json:"destLatency"`
		Cost          int64          `json:"cost"`
		Down          bool           `json:"down"`
	} `json:"links"`
	Terminators []struct {
		Service ref `json:"service"`
		Router  ref `json:"router"`
	} `json:"terminators"`
}

type topologyRouter struct {
	ref
	Connected   bool `json:"connected"`
	Disabled    bool `json:"disabled"`
	Quiesced    bool `json:"quiesced"`
	NoTraversal bool `json:"noTraversal"`
	Cost        int  `json:"cost"`
	Version     struct {
		Version string `json:"version"`
	} `json:"versionInfo"`
}

func topologyCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topology",
		Short: "Show the routers, the links between them, and which services are hosted where.",
		Long: "Show every router with its links, each with what this end and the other one have measured,\n" +
			"and the services that are hosted there. An arrow points from the router that has dialled.",
		Args: Exactly(0),
	}
	output := outputFlag(cmd, formText)
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		raw, err := s.topology(cmd.Context())
		if err != nil {
			return err
		}
		return told(s, *output, raw, s.picture)
	})
	return cmd
}

// topology reads all that a picture is made of, as it is answered.
func (s *session) topology(ctx context.Context) (jsontext.Value, error) {
	all, sorts := map[string][]jsontext.Value{}, map[string]string{"routers": "name"}
	for _, path := range []string{"routers", "links", "terminators"} {
		all[path] = []jsontext.Value{}
		_, err := s.Each(ctx, remote.List{Path: fabricRoot + "/" + path, Sort: sorts[path]}, func(raw jsontext.Value) error {
			all[path] = append(all[path], raw.Clone())
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return json.Marshal(all, json.Deterministic(true))
}

// picture writes the routers, each with its links and services beside it.
func (s *session) picture(t topology) error {
	linked := map[string][][]string{} // cells by router
	for _, l := range t.Links {
		cost := fmt.Sprint(l.Cost)
		if l.Down {
			cost = "down"
		}
		own, other := sayLatency(l.SourceLatency), sayLatency(l.DestLatency)
		linked[l.Source.ID] = append(linked[l.Source.ID], []string{"-> " + l.Dest.Name, own, other, cost})
		linked[l.Dest.ID] = append(linked[l.Dest.ID], []string{"<- " + l.Source.Name, other, own, cost})
	}
	hosted := map[string]map[string]int{} // terminators by router and service
	for _, at := range t.Terminators {
		if hosted[at.Router.ID] == nil {
			hosted[at.Router.ID] = map[string]int{}
		}
		hosted[at.Router.ID][at.Service.Name]++
	}
	table := screen.Table{Heads: []string{"router", "state", "linked to", "latency", "other end", "cost", "hosts"}}
	for _, r := range t.Routers {
		services := slices.Sorted(maps.Keys(hosted[r.ID]))
		for i := range max(1, len(linked[r.ID]), len(services)) {
			row := make([]string, len(table.Heads))
			if i == 0 {
				row[0], row[1] = r.Name, r.state()
			}
			if i < len(linked[r.ID]) {
				copy(row[2:], linked[r.ID][i])
			}
			if i < len(services) {
				row[6] = services[i]
				if n := hosted[r.ID][services[i]]; n > 1 {
					row[6] += fmt.Sprintf(" x%d", n)
				}
			}
			table.Rows = append(table.Rows, row)
		}
	}
	if len(table.Rows) == 0 {
		s.Notef("There are no routers.")
		return nil
	}
	return s.Write(table)
}

// state is how a router is, in a few words.
func (r topologyRouter) state() string {
	state := "offline"
	switch {
	case r.Disabled:
		state = "disabled"
	case r.Connected:
		state = "online " + r.Version.Version
	}
	if r.Quiesced {
		state += ", quiesced"
	}
	if r.Cost > 0 {
		state += fmt.Sprintf(", cost %d", r.Cost)
	}
	if r.NoTraversal {
		state += ", no traversal"
	}
	return state
}
