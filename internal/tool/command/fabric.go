package command

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
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

// fabricRoot is where a controller tells of what routers make between them, as
// a whole path.
const fabricRoot = "//fabric/v1"

// What is there beside records that are stored.
var (
	links    = noun{model.Links.Def}
	circuits = noun{model.Circuits.Def}
)

// sayLatency is nanoseconds as people say them.
func sayLatency(raw jsontext.Value) string {
	var ns int64
	if json.Unmarshal(raw, &ns) != nil || ns == 0 {
		return "?"
	}
	return fmt.Sprintf("%.1f ms", float64(ns)/float64(time.Millisecond))
}

// sayWay is the routers of a path by name.
func sayWay(raw jsontext.Value) string {
	return strings.Join(cells(raw), " > ")
}

// condition is a flag that narrows a list to what has to do with a record.
type condition struct {
	of     noun
	fields []string // that may name it, as filters write them
	name   string
}

// conditions are the flags of a list of volatile records: one for each kind that
// they refer to.
func (n noun) conditions(env Env, cmd *cobra.Command) []*condition {
	if n.Lane != kind.Volatile {
		return nil
	}
	var all []*condition
	for _, f := range n.Fields {
		if f.Ref == "" {
			continue
		}
		i := slices.IndexFunc(all, func(c *condition) bool { return c.of.Name == f.Ref })
		if i < 0 {
			i = len(all)
			c := &condition{of: noun{model.All.Named(f.Ref)}}
			cmd.Flags().StringVar(&c.name, f.Ref, "", "Only those of this "+c.of.spoken()+".")
			_ = cmd.RegisterFlagCompletionFunc(f.Ref, completeNames(env, c.of))
			all = append(all, c)
		}
		field := f.Name
		if f.Form == kind.Texts {
			field = "anyOf(" + field + ")"
		}
		all[i].fields = append(all[i].fields, field)
	}
	return all
}

// heed narrows a list to what a condition says.
func (s *session) heed(cmd *cobra.Command, c *condition, q *remote.List) error {
	if c.name == "" {
		return nil
	}
	id, err := s.idOf(cmd.Context(), c.of, c.name)
	if err != nil {
		return err
	}
	either := make([]string, len(c.fields))
	for i, field := range c.fields {
		either[i] = field + " = " + quoted(id)
	}
	also := "(" + strings.Join(either, " or ") + ")"
	if q.Filter != "" {
		also += " and (" + q.Filter + ")"
	}
	q.Filter = also
	return nil
}

// linksCommand and circuitsCommand are lists that people ask for so often that
// they have a short name.
func linksCommand(env Env) *cobra.Command { return listKind(env, links) }

func circuitsCommand(env Env) *cobra.Command {
	cmd := listKind(env, circuits)
	cmd.AddCommand(endCircuitCommand(env))
	return cmd
}

func endCircuitCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{Use: "end ID...", Short: "End circuits at once; who uses them may dial again.", Args: between(1, -1)}
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		for _, id := range args {
			err := s.Call(cmd.Context(), remote.Request{Method: http.MethodDelete, Path: circuits.at() + "/" + url.PathEscape(id)}, nil)
			if err != nil {
				return err
			}
			s.Printf("circuit %s ended\n", screen.Plain(id))
		}
		return nil
	})
	return cmd
}
