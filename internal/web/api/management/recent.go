package management

import (
	"net/http"
	"slices"
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/recent"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// recentOut is the last day of a controller.
type recentOut struct {
	Controller string             `json:"controller" doc:"Id of the controller whose day it is; others have their own. Empty if it has none."`
	Since      time.Time          `json:"since" doc:"Since when it is known what happened: the start of the controller."`
	From       time.Time          `json:"from" doc:"When the first step began."`
	Step       int                `json:"stepSeconds" doc:"How many seconds a step has."`
	Steps      []recentStepOut    `json:"steps" doc:"The steps of the day, the last of which is not over yet."`
	Services   []recentServiceOut `json:"services" doc:"The services that carried most, 5 at most, the one with most first."`
	OtherBytes int64              `json:"otherBytes" doc:"How many bytes all other services carried."`
}

type recentStepOut struct {
	Logins        int64         `json:"logins" doc:"How many attempts to authenticate opened a session."`
	LoginsRefused int64         `json:"loginsRefused" doc:"How many attempts to authenticate did not."`
	Dials         int64         `json:"dials" doc:"How many circuits were made."`
	DialsRefused  int64         `json:"dialsRefused" doc:"How many circuits were asked for and not made."`
	Circuits      int           `json:"circuits" doc:"How many circuits there were at most at one of the looks, of which there is one a minute."`
	Bytes         int64         `json:"bytes" doc:"How many bytes circuits carried, in both directions, as their routers have told by then."`
	SlowestLink   time.Duration `json:"slowestLink" doc:"How many nanoseconds the slowest link took there and back; 0 if none was measured."`
	MedianLink    time.Duration `json:"medianLink" doc:"How many nanoseconds the link in the middle took; 0 if none was measured."`
}

type recentServiceOut struct {
	ServiceID string           `json:"serviceId" doc:"Id of the service."`
	Service   string           `json:"service" doc:"What people call the service."`
	Bytes     int64            `json:"bytes" doc:"How many bytes it carried in the day, in both directions."`
	Steps     []carriedStepOut `json:"steps" doc:"The same by step."`
}

type carriedStepOut struct {
	Bytes int64 `json:"bytes" doc:"How many bytes the service carried."`
}

// mostServices is how many services are named.
const mostServices = 5

// stepsOffered are the minutes that a step may have, and stepParam says which.
var stepsOffered = []int64{1, 2, 5, 10, 15, 20, 30, 60}

var stepParam = rest.NumberParam("step", "How many minutes a step has: 1, 2, 5, 10, 15, 20, 30 or 60; 10 if not given.")

// mountRecent offers what happened lately.
func mountRecent(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/recent", Name: "detailRecent", Tag: "informational",
		Doc:  "Tell what the last day of this controller was like: logins, dials, circuits, bytes and how slow links were. It is kept in memory and begins with the controller.",
		Auth: rest.Admin, Need: "status:read", Params: []rest.Parameter{stepParam},
	}, func(c *rest.Call, _ rest.None) (recentOut, error) {
		step := int64(10)
		if asked := stepParam.Of(c); asked != nil {
			if step = *asked; !slices.Contains(stepsOffered, step) {
				return recentOut{}, fault.Invalid("step", "must be 1, 2, 5, 10, 15, 20, 30 or 60", step)
			}
		}
		return recentOf(c, s, s.Day.Report(int(step))), nil
	})
}

func recentOf(c *rest.Call, s *api.Service, day recent.Report) recentOut {
	out := recentOut{Controller: s.ControllerID, Since: day.Began, From: day.From, Step: int(day.Step.Seconds()), Services: []recentServiceOut{}}
	for _, m := range day.Steps {
		out.Steps = append(out.Steps, recentStepOut{
			Logins: int64(m.Logins), LoginsRefused: int64(m.LoginsRefused), Dials: int64(m.Dials), DialsRefused: int64(m.DialsRefused),
			Circuits: m.Circuits, Bytes: int64(m.Bytes), SlowestLink: m.Slowest, MedianLink: m.Median,
		})
	}
	for _, one := range day.Services {
		service, there := model.Services.Get(c.Snap, one.ID)
		if !there || len(out.Services) == mostServices {
			out.OtherBytes += int64(one.Bytes)
			continue
		}
		told := recentServiceOut{ServiceID: one.ID, Service: service.Name, Bytes: int64(one.Bytes)}
		for _, n := range one.Steps {
			told.Steps = append(told.Steps, carriedStepOut{int64(n)})
		}
		out.Services = append(out.Services, told)
	}
	return out
}
