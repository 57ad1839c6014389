package fabric

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// inspectIn asks what connected routers, and this controller, know.
type inspectIn struct {
	AppRegex string   `json:"appRegex" kind:"required,range=1..256" doc:"Regular expression that the ids or names of those who are asked contain; .* for all."`
	Values   []string `json:"requestedValues" kind:"required,range=1..16" doc:"What is asked for, such as links, router-circuits or stackdump; this controller knows config, connected-routers, data-model-index, identity-connection-statuses, links, metrics, router-data-model, stackdump, terminator-costs and circuit: with the id of one."`
}

// inspectOut is what they say. Clients expect it without an envelope.
type inspectOut struct {
	Success bool       `json:"success"` // whether anybody had an answer, or nobody failed to give one
	Errors  []string   `json:"errors"`  // who did not answer, and why
	Values  []valueOut `json:"values"`
}

type valueOut struct {
	AppID string         `json:"appId"` // id of the router, or of this controller
	Name  string         `json:"name"`
	Value jsontext.Value `json:"value"` // JSON as it came, and anything else as a text
}

// Bounds of one inspection.
const (
	inspectWait  = 10 * time.Second
	maxInspected = 8 << 20 // bytes of all values together
	inspectors   = 16      // routers that are asked at a time
	maxName      = 200     // bytes of what is asked for
)

// mountInspections offers to look into routers.
func mountInspections(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/inspections", Name: "inspect", Tag: "inspections",
		Doc: "Ask connected routers and this controller what they know.", Auth: rest.Admin, Need: "router:inspect", Types: []string{"application/json"},
	}, func(c *rest.Call, in inspectIn) (rest.File, error) {
		said, err := inspect(c, s, in)
		if err != nil {
			return rest.File{}, err
		}
		body, err := json.Marshal(said)
		return rest.File{Type: "application/json", Body: body}, err
	})
}

func inspect(c *rest.Call, s *api.Service, in inspectIn) (inspectOut, error) {
	match, err := regexp.Compile(in.AppRegex)
	if err != nil {
		return inspectOut{}, fault.Invalid("appRegex", "must be a regular expression: "+err.Error(), in.AppRegex)
	}
	for _, name := range in.Values {
		if name == "" || len(name) > maxName {
			return inspectOut{}, fault.Invalid("requestedValues", fmt.Sprintf("must have names of 1 to %d bytes", maxName), name)
		}
	}
	all := &gathered{}
	if match.MatchString(s.ControllerID) {
		for _, name := range in.Values {
			if value, ok := ownValue(c, s, name); ok {
				all.add(s.ControllerID, name, value)
			}
		}
	}
	askRouters(c, s, match, in.Values, all)
	return all.out(), nil
}

// askRouters asks every connected router whose id or name matches.
func askRouters(c *rest.Call, s *api.Service, match *regexp.Regexp, names []string, all *gathered) {
	ctx, cancel := context.WithTimeout(c.Context(), inspectWait)
	defer cancel()
	slots := make(chan struct{}, inspectors)
	var asked sync.WaitGroup
	for r := range model.Routers.All(c.Snap) {
		if _, online := s.Routers.Connected(r.ID); !online || !match.MatchString(r.ID) && !match.MatchString(r.Name) {
			continue
		}
		slots <- struct{}{}
		asked.Go(func() {
			defer func() { <-slots }()
			said, err := s.Fabric.Inspect(ctx, r.ID, names)
			if err != nil {
				all.fail(r.ID, err.Error())
			}
			for _, text := range said.Errors {
				all.fail(r.ID, text)
			}
			for _, name := range names {
				value, ok := said.Values[name]
				if name == ofFigures {
					value = figuresOf(s, r.ID, value)
				}
				if ok {
					all.add(r.ID, name, value)
				}
			}
		})
	}
	asked.Wait()
}

// gathered is what was said so far.
type gathered struct {
	mu     sync.Mutex
	size   int
	values []valueOut
	errors []string
}

func (g *gathered) add(id, name, text string) {
	value := jsontext.Value(text)
	if !value.IsValid() {
		value = kind.AppendText(nil, strings.ToValidUTF8(text, "\uFFFD"))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.size += len(value); g.size > maxInspected {
		g.size -= len(value)
		g.errors = append(g.errors, id+": its "+name+" is more than fits into one answer; ask fewer routers, or for less")
		return
	}
	g.values = append(g.values, valueOut{id, name, value})
}

func (g *gathered) fail(id, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.errors = append(g.errors, id+": "+strings.ToValidUTF8(why[:min(len(why), 500)], "\uFFFD"))
}

func (g *gathered) out() inspectOut {
	slices.SortFunc(g.values, func(a, b valueOut) int {
		return cmp.Or(strings.Compare(a.AppID, b.AppID), strings.Compare(a.Name, b.Name))
	})
	slices.Sort(g.errors)
	return inspectOut{Success: len(g.values) > 0 || len(g.errors) == 0, Errors: g.errors, Values: g.values}
}
