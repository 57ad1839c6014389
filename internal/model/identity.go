package model

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Identity is a person, device, service or router that may authenticate.
type Identity struct {
	kind.Meta
	_ kind.Uncopied `json:"-"`

	Name           string   `json:"name" kind:"required,unique,searched,range=1..256" doc:"What people call the identity; no two identities have the same name."`
	Type           string   `json:"type" kind:"required,enum=User|Device|Service|Router|Default,usual=Device,ref=identity-type:restrict,few,as=type,out=typeId" doc:"What the identity stands for; Default is for tools that make no difference, and a Router stays one and cannot have authenticators."`
	IsAdmin        bool     `json:"isAdmin" kind:"required" doc:"Whether the identity may manage the network; an admin also sees every service and edge router."`
	IsDefaultAdmin bool     `json:"isDefaultAdmin" kind:"server" doc:"Whether this is the admin that the network began with, who remains one and cannot be deleted."`
	AuthPolicyID   string   `json:"authPolicyId" kind:"ref=auth-policy:restrict,few,link,as=authPolicy,default=default" doc:"Id of the authentication policy that says how the identity may authenticate; default if empty."`
	ExternalID     string   `json:"externalId" kind:"unique,nullable" doc:"What tokens and certificates of others call the identity; null if they do not know it, and otherwise no two have the same."`
	RoleAttributes []string `json:"roleAttributes" kind:"attributes,null" doc:"Words by which policies find it: a policy with #word in its role list is about everything that has the word."`
	*SeldomIdentity
}

// SeldomIdentity is what most identities have nothing of.
type SeldomIdentity struct {
	ExternalIDIssuers         []string          `json:"externalIdIssuers" kind:"keep,nofilter,range=0..100,among=ca|ext-jwt-signer" doc:"Ids of the CAs and external JWT signers that alone may say that somebody is this identity; if empty, any signer may, and any CA unless the identity has an admin role, has an authenticator or is invited to enroll."`
	ProviderAttributes        []Provided        `json:"providerAttributes" kind:"server,nofilter" doc:"Those of roleAttributes that external JWT signers provide, and which: they follow what tokens say at every login, and changes of roleAttributes leave them as they are."`
	AttributeSigners          []string          `json:"attributeSigners" kind:"server,hidden,nofilter,ref=ext-jwt-signer:clear" doc:"Ids of the signers in providerAttributes: what one provides goes with it."`
	GrantedAttributes         []string          `json:"grantedAttributes" kind:"server,nofilter" doc:"Those of roleAttributes that grants give for a time; they come and go with the grants, and changes of roleAttributes leave them as they are."`
	EnrolledBy                string            `json:"enrolledBy" kind:"server,nullable,ref=ext-jwt-signer:clear" doc:"Id of the external JWT signer by whose token the identity came to be; null if by none."`
	AdminRoles                []string          `json:"adminRoles" kind:"keep,nofilter,range=0..50,ref=admin-role:restrict" doc:"Ids of the admin roles that the identity has by itself; role bindings may give it more. An admin needs none."`
	Permissions               []string          `json:"permissions" kind:"keep,nofilter,range=0..100" doc:"What the identity may do to the network, in the words of OpenZiti 2, such as service.read: each counts as an admin role that allows as much. An admin needs none."`
	AppData                   jsontext.Value    `json:"appData" kind:"nofilter" doc:"An object for applications to read; the controller gives it no meaning."`
	DefaultHostingCost        int               `json:"defaultHostingCost" kind:"range=0..65535" doc:"Cost of using the identity as the host of a service for which serviceHostingCosts has none; 0 if not given."`
	DefaultHostingPrecedence  string            `json:"defaultHostingPrecedence" kind:"enum=default|required|failed,default=default" doc:"Precedence of the identity as the host of a service for which serviceHostingPrecedences has none."`
	ServiceHostingCosts       map[string]int    `json:"serviceHostingCosts" kind:"range=0..65535,ref=service:clear" doc:"Cost of using the identity as the host of a service, by the id of the service."`
	ServiceHostingPrecedences map[string]string `json:"serviceHostingPrecedences" kind:"enum=default|required|failed,ref=service:clear" doc:"Precedence of the identity as the host of a service, by the id of the service."`
	DisabledAt                *time.Time        `json:"disabledAt" kind:"server,omit" doc:"When the identity was last disabled; left out once it is enabled."`
	DisabledUntil             *time.Time        `json:"disabledUntil" kind:"server,omit" doc:"When a disabled identity may authenticate again; left out if an admin has to enable it."`
}

// The types of identities that rules speak of.
const TypeRouter = "Router"

// Identities is the kind.
var Identities = kind.Define(kind.Spec[Identity]{
	Name:    "identity",
	Path:    "identities",
	Doc:     "Create an identity: a person, device, service or router that may authenticate.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "type", "isAdmin", "roleAttributes", "hasApiSession", "hasEdgeRouterConnection", "disabled", "lastSeenAt"},
	InFiles: true,
	Links: []string{
		"authenticators", "edge-router-policies", "edge-routers", "enrollments",
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

// Deleted takes along what its client said.
func (i *Identity) Deleted(w kind.Writer) error {
	if _, said := ClientInfos.Get(w, i.ID); !said {
		return nil
	}
	return ClientInfos.Delete(w, i.ID)
}

// Check keeps identities of routers in step with their routers, and what signers
// provide and grants give in its place, and wants issuers that exist.
func (i *Identity) Check(r kind.Reader, old *Identity) error {
	i.join(r, old)
	if err := i.checkPermissions(old); err != nil {
		return err
	}
	if err := i.checkIssuers(r, old); err != nil || old == nil {
		return err
	}
	if old.Type != i.Type && (old.Type == TypeRouter || i.Type == TypeRouter) {
		return fault.Invalid("typeId", "must stay "+old.Type, i.Type)
	}
	if router, ok := EdgeRouters.Get(r, i.ID); ok && i.Name != router.Name {
		return fault.Invalid("name", "must be that of the edge router; rename the router", i.Name)
	}
	return nil
}

// checkIssuers refuses what is neither a CA nor a signer. One that is deleted
// later stays in the list, or others would get its place.
func (i *Identity) checkIssuers(r kind.Reader, old *Identity) error {
	for _, id := range i.ExternalIDIssuers {
		_, isCA := CAs.Get(r, id)
		_, isSigner := ExtJWTSigners.Get(r, id)
		if !isCA && !isSigner && (old == nil || !slices.Contains(old.ExternalIDIssuers, id)) {
			return fault.On(fault.CodeNotFound, "externalIdIssuers", "names no ca or ext-jwt-signer with this id", id)
		}
	}
	return nil
}

// NamedBy reports whether the identity leaves it to a CA or signer to say that
// somebody is it, which it does to all if it lists none.
func (i *Identity) NamedBy(issuer string) bool {
	return len(i.ExternalIDIssuers) == 0 || slices.Contains(i.ExternalIDIssuers, issuer)
}

// Admin reports whether the identity may manage the network. The default
// admin cannot lose that.
func (i *Identity) Admin() bool { return i.IsAdmin || i.IsDefaultAdmin }

// Disabled reports whether the identity may not authenticate now.
func (i *Identity) Disabled(now time.Time) bool {
	return i.DisabledAt != nil && (i.DisabledUntil == nil || now.Before(*i.DisabledUntil))
}

// LastOwner reports whether it is the only default admin that is not disabled.
func (i *Identity) LastOwner(r kind.Reader, now time.Time) bool {
	if !i.IsDefaultAdmin || i.Disabled(now) {
		return false
	}
	for other := range Identities.All(r) {
		if other.ID != i.ID && other.IsDefaultAdmin && !other.Disabled(now) {
			return false
		}
	}
	return true
}

// longest is what a number of minutes may come to. More is for ever: as
// nanoseconds it could be more than a number holds, and lie in the past.
const longest = 100 * 365 * 24 * time.Hour

// Minutes is how long somebody is shut out for some minutes; 0 is for ever,
// which none or fewer are, and more than a hundred years of them.
func Minutes(n int) time.Duration {
	if n <= 0 || n > int(longest/time.Minute) {
		return 0
	}
	return time.Duration(n) * time.Minute
}

// Disable shuts the identity out for some minutes, or until it is enabled.
func (i *Identity) Disable(now time.Time, minutes int) {
	i.DisabledAt, i.DisabledUntil = &now, nil
	if lasts := Minutes(minutes); lasts > 0 {
		until := now.Add(lasts)
		i.DisabledUntil = &until
	}
}

// IdentityType is one of the fixed types of identities.
type IdentityType struct {
	kind.Meta

	Name string `json:"name" kind:"server,unique" doc:"What an identity has as its type."`
}

// IdentityTypes is the kind.
var IdentityTypes = kind.Define(kind.Spec[IdentityType]{
	Name:    "identity-type",
	Path:    "identity-types",
	Doc:     "The types that identities may have.",
	Verbs:   kind.Lists | kind.Gets,
	Columns: []string{"name"},
})
