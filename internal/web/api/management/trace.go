package management

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"netkeep/internal/auth/authn"
	"netkeep/internal/lang/fault"
	"netkeep/internal/model"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
)

// traceIn asks for data flow tracing of an identity.
type traceIn struct {
	Enabled  bool     `json:"enabled" doc:"Whether to turn tracing on; otherwise it is turned off."`
	Duration string   `json:"duration" doc:"For how long, such as 10m; needed to turn it on."`
	TraceID  string   `json:"traceId" doc:"Id to find the trace by; one is made up if empty."`
	Channels []string `json:"channels" doc:"What to trace: selectPath, establishPath or all."`
}

// traceOut is the tracing in force.
type traceOut struct {
	Enabled bool      `json:"enabled" doc:"Whether tracing is on."`
	TraceID string    `json:"traceId" doc:"Id to find the trace by."`
	Until   time.Time `json:"until" doc:"When tracing ends; the year 1 if it is off."`
}

// traces are the identities being traced, until their time is over. They are
// gone after a restart.
type traces struct {
	now func() time.Time
	mu  sync.Mutex
	on  map[string]traceOut // by identity
}

func mountTraces(a *rest.API, s *api.Service) {
	t := &traces{now: s.Sessions.Now, on: map[string]traceOut{}}
	rest.Handle(a, rest.Op{
		Method: http.MethodPut, Path: "/identities/{id}/trace", Name: "updateIdentityTracing", Tag: "identities",
		Doc: "Turn data flow tracing of an identity on for a while, or off.", Auth: rest.Admin,
	}, t.update)
}

var traceChannels = []string{"selectPath", "establishPath", "all"}

func (t *traces) update(c *rest.Call, in traceIn) (traceOut, error) {
	id := c.Param("id")
	if _, ok := model.Identities.Get(c.Snap, id); !ok {
		return traceOut{}, fault.NotFound("identity", id)
	}
	for _, ch := range in.Channels {
		if !slices.Contains(traceChannels, ch) {
			return traceOut{}, fault.Invalid("channels", "must be selectPath, establishPath or all", ch)
		}
	}
	if !in.Enabled {
		t.set(id, traceOut{})
		return traceOut{TraceID: in.TraceID}, nil
	}
	d, err := time.ParseDuration(in.Duration)
	if err != nil || d <= 0 {
		return traceOut{}, fault.Invalid("duration", "must be a time such as 10m", in.Duration)
	}
	out := traceOut{Enabled: true, TraceID: in.TraceID, Until: t.now().Add(d)}
	if out.TraceID == "" {
		out.TraceID = authn.NewToken()
	}
	t.set(id, out)
	return out, nil
}

// set changes one trace and forgets those whose time is over.
func (t *traces) set(id string, trace traceOut) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for other, o := range t.on {
		if now.After(o.Until) {
			delete(t.on, other)
		}
	}
	if trace.Enabled {
		t.on[id] = trace
	} else {
		delete(t.on, id)
	}
}
