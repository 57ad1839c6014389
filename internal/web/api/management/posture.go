package management

import (
	"net/http"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/policy/posture"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// mountPosture shows what is known of identities' devices. Nothing is of those
// that are unknown.
func mountPosture(a *rest.API, s *api.Service) {
	op := func(path, name, doc string) rest.Op {
		return rest.Op{Method: http.MethodGet, Path: "/identities/{id}/" + path, Name: name, Tag: "identities", Doc: doc, Auth: rest.Admin, Need: "identity:read"}
	}
	rest.Handle(a, op("posture-data", "getIdentityPostureData", "Get what an identity's devices have reported."),
		func(c *rest.Call, _ rest.None) (posture.Data, error) {
			return s.Grants.Data(c.Snap, c.Param("id")), nil
		})
	failed := op("failed-service-requests", "getIdentityFailedServiceRequests", "List an identity's recent requests that posture checks refused.")
	failed.Entries = posture.FailedRequestSchema()
	rest.Handle(a, failed,
		func(c *rest.Call, _ rest.None) (rest.List, error) {
			failed := s.Grants.Failures.Of(c.Param("id"))
			return rest.List{
				Page: filter.Page{Limit: int64(len(failed))}, Total: int64(len(failed)), Fields: []string{}, Len: len(failed),
				Append: func(dst []byte, i int) []byte { return failed[i].Append(dst) },
			}, nil
		})
}
