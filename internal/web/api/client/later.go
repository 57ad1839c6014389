package client

import (
	"net/http"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// byServer is how clients find out whom an invitation is from.
const byServer = "an invitation is signed with the key of the server that its iss names, whose certificate shows that it is the one"

// mountLater adds what later versions of the contract have and is not here.
func mountLater(a *rest.API) {
	api.MountElsewhere(a, []api.Elsewhere{
		{Op: rest.Op{Method: http.MethodGet, Path: "/enroll/jwks", Name: "getEnrollmentJwks", Tag: "enroll", Auth: rest.Anonymous}, Why: byServer},
		{Op: rest.Op{Method: http.MethodPost, Path: "/enroll/challenge", Name: "enrollmentChallenge", Tag: "enroll", Auth: rest.Anonymous}, Why: byServer},
	})
}
