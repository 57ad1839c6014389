package client

import (
	"net/http"

	"netkeep.internal/internal/policy/posture"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// promptedOut is the services that ask for a second factor again because the
// device was woken or unlocked.
type promptedOut struct {
	Services []promptedService `json:"services" doc:"Services that ask for a new code because the device was woken or unlocked; empty if none does."`
}

type promptedService struct {
	ID               string `json:"id" doc:"Id of the service."`
	Name             string `json:"name" doc:"What people call the service."`
	PostureQueryType string `json:"postureQueryType" doc:"Type of the posture check that asks, which is MFA."`
	Timeout          int    `json:"timeout" doc:"For how many seconds one code is enough; -1 for as long as the session lasts."`
	TimeoutRemaining int    `json:"timeoutRemaining" doc:"For how many seconds the service can still be used without a new code; -1 for as long as the session lasts."`
}

// mountPosture takes what clients say of their devices.
func mountPosture(a *rest.API, s *api.Service) {
	report := func(c *rest.Call, responses []posture.Response) (promptedOut, error) {
		prompted, err := s.Grants.Report(c.Context(), c.Author(), api.Caller(c), responses)
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
