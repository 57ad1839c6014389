package model

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
)

// Identity is a person, device, service or router that may authenticate.
type Identity struct {
	kind.Meta

	Name                      string            `json:"name" kind:"required,unique,range=1..256"`
	Type                      string            `json:"type" kind:"required,enum=User|Device|Service|Router,ref=identity-type:restrict,as=type,out=typeId"`
	IsAdmin                   bool              `json:"isAdmin" kind:"required"`
	IsDefaultAdmin            bool              `json:"isDefaultAdmin" kind:"server"`
	AuthPolicyID              string            `json:"authPolicyId" kind:"ref=auth-policy:restrict,as=authPolicy,default=default"`
	ExternalID                string            `json:"externalId" kind:"unique,nullable"`
	RoleAttributes            []string          `json:"roleAttributes" kind:"attributes"`
	AppData                   jsontext.Value    `json:"appData" kind:"nofilter"`
	DefaultHostingCost        int               `json:"defaultHostingCost" kind:"range=0..65535"`
	DefaultHostingPrecedence  string            `json:"defaultHostingPrecedence" kind:"enum=default|required|failed,default=default"`
	ServiceHostingCosts       map[string]int    `json:"serviceHostingCosts" kind:"range=0..65535,ref=service:clear"`
	ServiceHostingPrecedences map[string]string `json:"serviceHostingPrecedences" kind:"enum=default|required|failed,ref=service:clear"`
	EnvInfo                   EnvInfo           `json:"envInfo" kind:"server,nofilter"`
	SDKInfo                   SDKInfo           `json:"sdkInfo" kind:"server,nofilter"`
	DisabledAt                *time.Time        `json:"disabledAt" kind:"server,omit"`
	DisabledUntil             *time.Time        `json:"disabledUntil" kind:"server,omit"`
}

// The types of identities that rules speak of.
const TypeRouter = "Router"

// EnvInfo is what a client says of the machine it runs on.
type EnvInfo struct {
	Arch      string `json:"arch" kind:"omit"`
	Domain    string `json:"domain" kind:"omit"`
	Hostname  string `json:"hostname" kind:"omit"`
	OS        string `json:"os" kind:"omit"`
	OSRelease string `json:"osRelease" kind:"omit"`
	OSVersion string `json:"osVersion" kind:"omit"`
}

// SDKInfo is what a client says of itself.
type SDKInfo struct {
	AppID      string `json:"appId" kind:"omit"`
	AppVersion string `json:"appVersion" kind:"omit"`
	Branch     string `json:"branch" kind:"omit"`
	Revision   string `json:"revision" kind:"omit"`
	Type       string `json:"type" kind:"omit"`
	Version    string `json:"version" kind:"omit"`
}

// Identities is the kind.
var Identities = kind.Define(kind.Spec[Identity]{
	Name: "identity",
	Path: "identities",
	Doc:  "Create an identity: a person, device, service or router that may authenticate.",
	Links: []string{
		"auth-policies", "authenticators", "edge-router-policies", "edge-routers", "enrollments",
		"failed-service-requests", "posture-data", "service-configs", "service-policies", "services",
	},
})

// Guard keeps the default admin, and the identity of an edge router as long as
// the router uses it.
func (i *Identity) Guard(r kind.Reader) error {
	if router, ok := EdgeRouters.Get(r, i.ID); ok && router.IsTunnelerEnabled {
		return fault.New(fault.CodeUndeletable, "edge router "+router.Name+" uses this identity; turn its tunneler off instead")
	}
	if i.IsDefaultAdmin {
		return fault.New(fault.CodeUndeletable, "the default admin cannot be deleted")
	}
	return nil
}

// Check keeps identities of routers in step with their routers.
func (i *Identity) Check(r kind.Reader, old *Identity) error {
	if old == nil {
		return nil
	}
	if old.Type != i.Type && (old.Type == TypeRouter || i.Type == TypeRouter) {
		return fault.Invalid("typeId", "must stay "+old.Type, i.Type)
	}
	if router, ok := EdgeRouters.Get(r, i.ID); ok && i.Name != router.Name {
		return fault.Invalid("name", "must be that of the edge router; rename the router", i.Name)
	}
	return nil
}

// Admin reports whether the identity may manage the network. The default
// admin cannot lose that.
func (i *Identity) Admin() bool { return i.IsAdmin || i.IsDefaultAdmin }

// Disabled reports whether the identity may not authenticate now.
func (i *Identity) Disabled(now time.Time) bool {
	return i.DisabledAt != nil && (i.DisabledUntil == nil || now.Before(*i.DisabledUntil))
}

// IdentityType is one of the fixed types of identities.
type IdentityType struct {
	kind.Meta

	Name string `json:"name" kind:"server,unique"`
}

// IdentityTypes is the kind.
var IdentityTypes = kind.Define(kind.Spec[IdentityType]{
	Name: "identity-type",
	Path: "identity-types",
	Doc:  "The types that identities may have.",
})
