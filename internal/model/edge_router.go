package model

import (
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// EdgeRouter is a router that clients connect to.
type EdgeRouter struct {
	kind.Meta

	Name                  string         `json:"name" kind:"required,unique,searched,range=1..256" doc:"What people call the router; no two edge routers have the same name."`
	Cost                  int            `json:"cost" kind:"range=0..65535" doc:"What it costs to send traffic through the router, compared with other ways; 0 if not given."`
	Disabled              bool           `json:"disabled" doc:"Whether the router is shut out of the network; true ends its connection at once."`
	NoTraversal           bool           `json:"noTraversal" doc:"Whether the router carries only traffic that enters or leaves the network at it."`
	IsTunnelerEnabled     bool           `json:"isTunnelerEnabled" doc:"Whether the router may dial and host services itself; it then has an identity and an edge router policy with its own id."`
	RoleAttributes        []string       `json:"roleAttributes" kind:"attributes,null" doc:"Words by which policies find it: a policy with #word in its role list is about everything that has the word."`
	AppData               jsontext.Value `json:"appData" kind:"nofilter" doc:"An object for applications to read; the controller gives it no meaning."`
	AllowedNames          []string       `json:"allowedNames" kind:"keep,nofilter,range=0..100" doc:"Names and addresses that the router's certificates may be for although they are wildcards or a controller's, as a router on a controller's own machine needs it; what other names it has is up to the router."`
	IsVerified            bool           `json:"isVerified" kind:"server" doc:"Whether the router has enrolled."`
	Fingerprint           string         `json:"fingerprint" kind:"server,unique,omit" doc:"SHA-1 of the certificate that the router connects with, in hexadecimal; left out until it has enrolled."`
	CertPEM               string         `json:"certPem" kind:"server,nullable,nofilter" doc:"Certificate that the router connects with, as PEM; null until it has enrolled."`
	UnverifiedFingerprint string         `json:"unverifiedFingerprint" kind:"server,nullable,nofilter" doc:"SHA-1 of a certificate that is to replace the present one and was not used yet; null if there is none."`
	UnverifiedCertPEM     string         `json:"unverifiedCertPem" kind:"server,nullable,nofilter" doc:"Certificate that is to replace the present one and was not used yet, as PEM; null if there is none."`
	// TakesDigests never goes back: a router that could say otherwise of itself
	// would be told what it is not to know.
	TakesDigests bool `json:"takesDigests" kind:"server,hidden,nofilter" doc:"Whether the router is told digests in place of tokens, as it said when it enrolled, or later."`
	// What it has shown of clients that log in by OpenID Connect; one that takes digests is of
	// our own making, and takes both.
	TakesBearers bool   `json:"takesBearers" kind:"server,hidden,nofilter" doc:"Whether the router has shown that it lets clients in that show access tokens."`
	TakesReports bool   `json:"takesReports" kind:"server,hidden,nofilter" doc:"Whether the router has shown that it takes what devices of such clients report."`
	Home         string `json:"home" kind:"server,hidden,nofilter" doc:"Where routers reach the controller inside which the router runs; empty if it runs by itself."`
}

// EdgeRouters is the kind.
var EdgeRouters = kind.Define(kind.Spec[EdgeRouter]{
	Name:    "edge-router",
	Path:    "edge-routers",
	Doc:     "Create an edge router: a router that clients connect to.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "isOnline", "onlineSince as since", "controllerId as controller", "versionInfo.version as version", "isVerified", "hostname", "roleAttributes", "cost", "disabled"},
	InFiles: true,
	Links:   []string{"edge-router-policies"},
})

// Fill writes names in one form.
func (e *EdgeRouter) Fill() { e.AllowedNames = hostNames(e.AllowedNames) }

// Check refuses names that are none.
func (e *EdgeRouter) Check(kind.Reader, *EdgeRouter) error { return checkAllowed(e.AllowedNames) }

// Bears reports whether the router lets clients in that show access tokens.
func (e *EdgeRouter) Bears() bool { return e.TakesDigests || e.TakesBearers }

// Reports reports whether devices of such clients report to the router.
func (e *EdgeRouter) Reports() bool { return e.TakesDigests || e.TakesReports }

// Saved keeps what every edge router has beside it: its entry among all
// routers, and what lets it act as a client of the network.
func (e *EdgeRouter) Saved(w kind.Writer, _ *EdgeRouter) error {
	err := Routers.Upsert(w, e.ID, func(r *Router) {
		r.Name, r.Cost, r.Disabled, r.NoTraversal = e.Name, e.Cost, e.Disabled, e.NoTraversal
		r.AllowedNames, r.IsVerified, r.Fingerprint, r.IsEdge = e.AllowedNames, e.IsVerified, e.Fingerprint, true
		r.UnverifiedFingerprint, r.UnverifiedCertPEM, r.CertPEM = e.UnverifiedFingerprint, e.UnverifiedCertPEM, e.CertPEM
	})
	if err != nil {
		return err
	}
	if !e.IsTunnelerEnabled {
		return e.dropTunneler(w)
	}
	err = Identities.Upsert(w, e.ID, func(i *Identity) {
		if i.Type == "" {
			i.Type = TypeRouter
		}
		i.Name = e.Name
	})
	if err != nil {
		return err
	}
	return EdgeRouterPolicies.Upsert(w, e.ID, func(p *EdgeRouterPolicy) {
		p.Name, p.Semantic, p.System = "edge-router-"+e.ID+"-system", AnyOf, true
		p.IdentityRoles, p.EdgeRouterRoles = []string{"@" + e.ID}, []string{"@" + e.ID}
	})
}

// Deleted removes what stood beside the router.
func (e *EdgeRouter) Deleted(w kind.Writer) error {
	if err := e.dropTunneler(w); err != nil {
		return err
	}
	return drop(w, Routers, e.ID)
}

func (e *EdgeRouter) dropTunneler(w kind.Writer) error {
	if err := drop(w, EdgeRouterPolicies, e.ID); err != nil {
		return err
	}
	return drop(w, Identities, e.ID)
}

// Router is any router: those that only carry traffic, and beside each edge
// router its entry here with the same id.
type Router struct {
	kind.Meta

	Name                  string   `json:"name" kind:"required,unique,range=1..256" doc:"What people call the router; no two routers have the same name."`
	Cost                  int      `json:"cost" kind:"range=0..65535" doc:"What it costs to send traffic through the router, compared with other ways; 0 if not given."`
	Disabled              bool     `json:"disabled" doc:"Whether the router is shut out of the network; true ends its connection at once."`
	NoTraversal           bool     `json:"noTraversal" doc:"Whether the router carries only traffic that enters or leaves the network at it."`
	AllowedNames          []string `json:"allowedNames" kind:"keep,nofilter,range=0..100" doc:"Names and addresses that the router's certificates may be for although they are wildcards or a controller's, as a router on a controller's own machine needs it; what other names it has is up to the router."`
	IsVerified            bool     `json:"isVerified" kind:"server" doc:"Whether the router has enrolled."`
	Fingerprint           string   `json:"fingerprint" kind:"server,unique" doc:"SHA-1 of the certificate that the router connects with, in hexadecimal; empty until it has enrolled."`
	UnverifiedFingerprint string   `json:"unverifiedFingerprint" kind:"server,nullable,nofilter" doc:"SHA-1 of a certificate that is to replace the present one and was not used yet; null if there is none."`
	UnverifiedCertPEM     string   `json:"unverifiedCertPem" kind:"server,nullable,nofilter" doc:"Certificate that is to replace the present one and was not used yet, as PEM; null if there is none."`
	CertPEM               string   `json:"certPem" kind:"server,hidden,nofilter" doc:"Certificate that the router connects with, as PEM."`
	CertNames             []string `json:"certNames" kind:"server,hidden,nofilter" doc:"What the router's certificates are for besides its id, in the form that HostName gives it."`
	Quiesced              bool     `json:"quiesced" kind:"server,hidden,nofilter" doc:"Whether the router has asked that no new circuits end at it while there is another way: its terminators count as failed."`
	IsEdge                bool     `json:"isEdge" kind:"server,hidden,nofilter" doc:"Whether this stands for an edge router, which is the one to change."`
}

// Routers is the kind.
var Routers = kind.Define(kind.Spec[Router]{
	Name:    "router",
	Path:    "routers",
	Doc:     "Create a router that carries traffic between other routers.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "isOnline", "isVerified", "cost", "disabled"},
	InFiles: true,
})

// Leaving reports whether a router has asked that nothing new comes to it while
// there is another way.
func Leaving(r kind.Reader, routerID string) bool {
	router, ok := Routers.Get(r, routerID)
	return ok && router.Quiesced
}

// Fill writes names in one form.
func (r *Router) Fill() { r.AllowedNames = hostNames(r.AllowedNames) }

// Check refuses names that are none.
func (r *Router) Check(kind.Reader, *Router) error { return checkAllowed(r.AllowedNames) }

// Deleted removes the edge router that this was the entry of.
func (r *Router) Deleted(w kind.Writer) error {
	if !r.IsEdge {
		return nil
	}
	return drop(w, EdgeRouters, r.ID)
}

// Foreign refuses a change of an edge router's entry: the edge router is what
// has to be changed.
func (r *Router) Foreign() error {
	if !r.IsEdge {
		return nil
	}
	return fault.New(fault.CodeForeignRouter, "this is an edge router; change it at edge-routers/"+r.ID)
}

// drop deletes the record with an id, if there is one.
func drop[T any](w kind.Writer, k *kind.Kind[T], id string) error {
	if _, there := k.Get(w, id); !there {
		return nil
	}
	return k.Delete(w, id)
}
