package management

import (
	"netkeep.internal/internal/policy/request"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// mountRequests lets those decide on requests for access who have the power to.
func mountRequests(a *rest.API) { api.MountDecisions(a, rest.Admin, request.Decide) }
