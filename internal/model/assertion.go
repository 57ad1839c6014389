package model

import "netkeep.internal/internal/lang/kind"

// What an assertion expects.
const (
	Never    = "never"
	Always   = "always"
	Somebody = "somebody"
	NoPolicy = "no-policy"
)

// Assertion says what must hold of who may use what, whatever policies say. Package
// assertion judges writes by it.
type Assertion struct {
	kind.Meta

	Name          string   `json:"name" kind:"required,unique,range=1..256" doc:"What people call the assertion; no two assertions have the same name."`
	Expect        string   `json:"expect" kind:"required,enum=never|always|somebody|no-policy" doc:"What must hold: none of the identities may use any of the services (never), each may use each (always), at least one of the identities may use each of the services that have somebody on the other side, so that all that is hosted can be reached (somebody), or no policy pairs one of the identity roles with one of the service roles, as they are written (no-policy)."`
	Type          string   `json:"type" kind:"enum=Dial|Bind,default=Dial" doc:"Whether it is about dialing the services (Dial) or hosting them (Bind); Dial if not given."`
	Semantic      string   `json:"semantic" kind:"enum=AllOf|AnyOf,default=AnyOf" doc:"Whether a role list picks what has all of its attributes (AllOf) or any of them (AnyOf); ids that it lists are picked either way. AnyOf if not given."`
	IdentityRoles []string `json:"identityRoles" kind:"required,roles=identity" doc:"Which identities the assertion is about: #attribute, @id, or #all alone for all of them. There must be such identities."`
	ServiceRoles  []string `json:"serviceRoles" kind:"required,roles=service" doc:"Which services the assertion is about: #attribute, @id, or #all alone for all of them. There must be such services."`
}

// Assertions is the kind.
var Assertions = kind.Define(kind.Spec[Assertion]{
	Name:    "assertion",
	Path:    "assertions",
	Doc:     "Create an assertion: what must hold of who may use which services. A change that would break it is refused.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "expect", "type", "semantic", "identityRoles", "serviceRoles"},
	InFiles: true,
})
