package client

import (
	"net/http"

	"netkeep/internal/policy/posture"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
)

// promptedOut is the services that ask for a second factor again because the
// device was woken or unlocked.
type promptedOut struct {
	Services []promptedService `json:"services"`
}

type promptedService struct {
	ID               string `json:"id"`
	Name             string `json:"name"`
	PostureQueryType string `json:"postureQueryType"`
	Timeout          int    `json:"timeout"`
	TimeoutRemaining int    `json:"timeoutRemaining"`
}

// mountPosture takes what clients say of their devices.
func mountPosture(a *rest.API, s *api.Service) {
	report := func(c *rest.Call, responses []posture.Response) (promptedOut, error) {
		prompted, err := s.Access.Report(c.Context(), api.Caller(c), responses)
		out := promptedOut{}
		for _, p := range prompted {
			out.Services = append(out.Services, promptedService{
				ID: p.Service.ID, Name: p.Service.Name, PostureQueryType: p.Check.TypeID,
				Timeout: p.Timeout, TimeoutRemaining: p.TimeoutRemaining,
			})
		}
		return out, err
	}
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/posture-response", Name: "createPostureResponse", Tag: "posture-checks",
		Doc: "Report on the device in use.", Auth: rest.Full, MaxBody: 64 << 10, Status: http.StatusCreated,
	}, func(c *rest.Call, in posture.Response) (promptedOut, error) { return report(c, []posture.Response{in}) })
	rest.Handle(a, rest.Op{
		Method: http.MethodPost, Path: "/posture-response-bulk", Name: "createPostureResponseBulk", Tag: "posture-checks",
		Doc: "Report on the device in use, in several respects.", Auth: rest.Full, MaxBody: 256 << 10,
	}, func(c *rest.Call, in rest.Batch[posture.Response]) (promptedOut, error) { return report(c, in.Items) })
}
