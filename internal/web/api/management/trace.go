package management

import (
	"net/http"
	"slices"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
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

func mountTraces(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPut, Path: "/identities/{id}/trace", Name: "updateIdentityTracing", Tag: "identities",
		Doc: "Turn data flow tracing of an identity on for a while, or off.", Auth: rest.Admin, Need: "identity:trace",
	}, func(c *rest.Call, in traceIn) (traceOut, error) {
		id := c.Param("id")
		if _, ok := model.Identities.Get(c.Snap, id); !ok {
			return traceOut{}, fault.NotFound("identity", id)
		}
		return in.answer(s.Sessions.Now())
	})
}

var traceChannels = []string{"selectPath", "establishPath", "all"}

// answer says what is asked for. No router traces yet, so there is nobody to
// tell.
func (in traceIn) answer(now time.Time) (traceOut, error) {
	for _, ch := range in.Channels {
		if !slices.Contains(traceChannels, ch) {
			return traceOut{}, fault.Invalid("channels", "must be selectPath, establishPath or all", ch)
		}
	}
	if !in.Enabled {
		return traceOut{TraceID: in.TraceID}, nil
	}
	d, err := time.ParseDuration(in.Duration)
	if err != nil || d <= 0 {
		return traceOut{}, fault.Invalid("duration", "must be a time such as 10m", in.Duration)
	}
	out := traceOut{Enabled: true, TraceID: in.TraceID, Until: now.Add(d)}
	if out.TraceID == "" {
		out.TraceID = authn.NewToken()
	}
	return out, nil
}
