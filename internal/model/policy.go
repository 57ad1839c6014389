package model

import (
	"slices"

	"netkeep.internal/internal/lang/kind"
)

// The semantics of a policy's role lists.
const (
	AllOf = "AllOf"
	AnyOf = "AnyOf"
)

// The types of service policies and sessions.
const (
	Dial = "Dial"
	Bind = "Bind"
)

// Selects reports whether a role list selects a record that has these roles: #all,
// its id and its attributes, each as lists name them.
func Selects(list []string, semantic string, has []string) bool {
	listed, held := 0, 0
	for _, role := range list {
		found := slices.Contains(has, role)
		if found && (role == "#all" || role[0] == '@') {
			return true
		}
		if role != "" && role[0] == '#' {
			listed++
			if found {
				held++
			}
		}
	}
	if semantic == AnyOf {
		return held > 0
	}
	return listed > 0 && held == listed
}

// ServicePolicy lets identities dial or host services.
type ServicePolicy struct {
	kind.Meta

	Name              string   `json:"name" kind:"required,unique,range=1..256" doc:"What people call the policy; no two service policies have the same name."`
	Semantic          string   `json:"semantic" kind:"required,enum=AllOf|AnyOf,usual=AnyOf" doc:"Whether a role list picks what has all of its attributes (AllOf) or any of them (AnyOf); ids that it lists are picked either way."`
	Type              string   `json:"type" kind:"required,enum=Dial|Bind,numbered" doc:"Whether the identities may dial the services (Dial) or host them (Bind)."`
	IdentityRoles     []string `json:"identityRoles" kind:"roles=identity,null" doc:"Which identities the policy is about: #attribute, @id, or #all alone for all of them; none if empty."`
	ServiceRoles      []string `json:"serviceRoles" kind:"roles=service,null" doc:"Which services the policy is about: #attribute, @id, or #all alone for all of them; none if empty."`
	PostureCheckRoles []string `json:"postureCheckRoles" kind:"roles=posture-check,null" doc:"Which posture checks a device must pass: #attribute, @id, or #all alone for all of them; none if empty."`
	Validity
}

// ServicePolicies is the kind.
var ServicePolicies = kind.Define(kind.Spec[ServicePolicy]{
	Name:    "service-policy",
	Path:    "service-policies",
	Doc:     "Create a service policy: which identities may dial or host which services.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "type", "semantic", "identityRoles", "serviceRoles", "postureCheckRoles"},
	InFiles: true,
	Links:   []string{"identities", "posture-checks", "services"},
})

// Check keeps the policy what it is at the moment.
func (p *ServicePolicy) Check(r kind.Reader, old *ServicePolicy) error {
	return p.settle(r, old == nil)
}

// EdgeRouterPolicy lets identities connect to edge routers.
type EdgeRouterPolicy struct {
	kind.Meta

	Name            string   `json:"name" kind:"required,unique,range=1..256" doc:"What people call the policy; no two edge router policies have the same name."`
	Semantic        string   `json:"semantic" kind:"required,enum=AllOf|AnyOf,usual=AnyOf" doc:"Whether a role list picks what has all of its attributes (AllOf) or any of them (AnyOf); ids that it lists are picked either way."`
	EdgeRouterRoles []string `json:"edgeRouterRoles" kind:"roles=edge-router,null" doc:"Which edge routers the policy is about: #attribute, @id, or #all alone for all of them; none if empty."`
	IdentityRoles   []string `json:"identityRoles" kind:"roles=identity,null" doc:"Which identities the policy is about: #attribute, @id, or #all alone for all of them; none if empty."`
	Inside          bool     `json:"inside" kind:"server,hidden,nofilter" doc:"Whether a controller made the policy so that the router inside of it can be used."`
	Validity
}

// EdgeRouterPolicies is the kind.
var EdgeRouterPolicies = kind.Define(kind.Spec[EdgeRouterPolicy]{
	Name:    "edge-router-policy",
	Path:    "edge-router-policies",
	Doc:     "Create an edge router policy: which identities may connect to which edge routers.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "semantic", "identityRoles", "edgeRouterRoles"},
	InFiles: true,
	Links:   []string{"edge-routers", "identities"},
})

// Check keeps the policy what it is at the moment.
func (p *EdgeRouterPolicy) Check(r kind.Reader, old *EdgeRouterPolicy) error {
	return p.settle(r, old == nil)
}

// ServiceEdgeRouterPolicy lets services be used through edge routers.
type ServiceEdgeRouterPolicy struct {
	kind.Meta

	Name            string   `json:"name" kind:"required,unique,range=1..256" doc:"What people call the policy; no two service edge router policies have the same name."`
	Semantic        string   `json:"semantic" kind:"required,enum=AllOf|AnyOf,usual=AnyOf" doc:"Whether a role list picks what has all of its attributes (AllOf) or any of them (AnyOf); ids that it lists are picked either way."`
	EdgeRouterRoles []string `json:"edgeRouterRoles" kind:"roles=edge-router,null" doc:"Which edge routers the policy is about: #attribute, @id, or #all alone for all of them; none if empty."`
	ServiceRoles    []string `json:"serviceRoles" kind:"roles=service,null" doc:"Which services the policy is about: #attribute, @id, or #all alone for all of them; none if empty."`
	Inside          bool     `json:"inside" kind:"server,hidden,nofilter" doc:"Whether a controller made the policy so that the router inside of it can be used."`
	Validity
}

// ServiceEdgeRouterPolicies is the kind.
var ServiceEdgeRouterPolicies = kind.Define(kind.Spec[ServiceEdgeRouterPolicy]{
	Name:    "service-edge-router-policy",
	Path:    "service-edge-router-policies",
	Doc:     "Create a service edge router policy: which services may be used through which edge routers.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "semantic", "serviceRoles", "edgeRouterRoles"},
	InFiles: true,
	Links:   []string{"edge-routers", "services"},
})

// Check keeps the policy what it is at the moment.
func (p *ServiceEdgeRouterPolicy) Check(r kind.Reader, old *ServiceEdgeRouterPolicy) error {
	return p.settle(r, old == nil)
}
