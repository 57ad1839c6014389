package command

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/tool/screen"
)

// fabricRoot is where a controller tells of what routers make between them, as
// a whole path.
const fabricRoot = "//fabric/v1"

// What is there beside records.
var (
	links    = noun{&kind.Def{Name: "link", Path: "links"}}
	circuits = noun{&kind.Def{Name: "circuit", Path: "circuits"}}
)

// linkColumns and circuitColumns are what tables show.
var (
	linkColumns = []column{
		{head: "from", path: "sourceRouter", member: "sourceRouter"}, {head: "to", path: "destRouter", member: "destRouter"},
		{head: "latency", path: "sourceLatency", member: "sourceLatency", say: sayLatency},
		{head: "other end", path: "destLatency", member: "destLatency", say: sayLatency},
		{head: "cost", path: "cost", member: "cost"}, {head: "down", path: "down", member: "down"}, {head: "id", path: "id", member: "id"},
	}
	circuitColumns = []column{
		{head: "service", path: "service", member: "service"}, {head: "identity", path: "client", member: "client"},
		{head: "host", path: "host", member: "host"}, {head: "path", path: "path", member: "path", say: sayPath},
		{head: "since", path: "createdAt", member: "createdAt"}, {head: "id", path: "id", member: "id"},
	}
)

// sayLatency is nanoseconds as people say them.
func sayLatency(raw jsontext.Value) string {
	var ns int64
	if json.Unmarshal(raw, &ns) != nil || ns == 0 {
		return "?"
	}
	return fmt.Sprintf("%.1f ms", float64(ns)/float64(time.Millisecond))
}

// sayPath is the routers of a path by name.
func sayPath(raw jsontext.Value) string {
	var path struct {
		Nodes []struct {
			Name string `json:"name"`
		} `json:"nodes"`
	}
	if json.Unmarshal(raw, &path) != nil {
		return ""
	}
	names := make([]string, len(path.Nodes))
	for i, n := range path.Nodes {
		names[i] = n.Name
	}
	return strings.Join(names, " > ")
}

// condition is a flag that narrows a list to what has to do with a record.
type condition struct {
	flag, doc string
	of        noun
	filter    string // with %s for the id
}

func linksCommand(env Env) *cobra.Command {
	return fabricList(env, links, linkColumns, "List the links between routers, with what each end has measured.",
		condition{"router", "Only those of this router.", routers, "sourceRouterId = %[1]s or destRouterId = %[1]s"})
}

func circuitsCommand(env Env) *cobra.Command {
	cmd := fabricList(env, circuits, circuitColumns, "List the circuits: who uses which service, and over which routers.",
		condition{"service", "Only those of this service.", services, "serviceId = %s"},
		condition{"identity", "Only those that this identity dials or hosts.", identities, "clientId = %[1]s or hostId = %[1]s"},
		condition{"router", "Only those over this router.", routers, "anyOf(routers) = %s"})
	cmd.AddCommand(endCircuitCommand(env))
	return cmd
}

// fabricList makes a command that lists something that is no record.
func fabricList(env Env, n noun, cols []column, short string, conditions ...condition) *cobra.Command {
	cmd := &cobra.Command{Use: n.Path, Short: short, Args: Exactly(0)}
	output := outputFlag(cmd, formTable, formName, formCSV)
	var l listing
	l.flags(cmd, n)
	names := make([]string, len(conditions))
	for i, c := range conditions {
		cmd.Flags().StringVar(&names[i], c.flag, "", c.doc)
		_ = cmd.RegisterFlagCompletionFunc(c.flag, completeNames(env, c.of))
	}
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, _ []string) error {
		q := l.query(n)
		q.Path = fabricRoot + "/" + n.Path
		for i, c := range conditions {
			if names[i] == "" {
				continue
			}
			id, err := s.idOf(cmd.Context(), c.of, names[i])
			if err != nil {
				return err
			}
			also := "(" + fmt.Sprintf(c.filter, quoted(id)) + ")"
			if q.Filter != "" {
				also += " and (" + q.Filter + ")"
			}
			q.Filter = also
		}
		return s.listed(cmd, n, q, cols, *output)
	})
	return cmd
}

func endCircuitCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{Use: "end ID...", Short: "End circuits at once; who uses them may dial again.", Args: between(1, -1)}
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		for _, id := range args {
			err := s.Call(cmd.Context(), remote.Request{Method: http.MethodDelete, Path: fabricRoot + "/circuits/" + url.PathEscape(id)}, nil)
			if err != nil {
				return err
			}
			s.Printf("circuit %s ended\n", screen.Plain(id))
		}
		return nil
	})
	return cmd
}
