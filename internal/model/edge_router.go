package model

import (
	"github.com/go-json-experiment/json/jsontext"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/kind"
)

// EdgeRouter is a router that clients connect to.
type EdgeRouter struct {
	kind.Meta

	Name                  string         `json:"name" kind:"required,unique,range=1..256"`
	Cost                  int            `json:"cost" kind:"range=0..65535"`
	Disabled              bool           `json:"disabled"`
	NoTraversal           bool           `json:"noTraversal"`
	IsTunnelerEnabled     bool           `json:"isTunnelerEnabled"`
	RoleAttributes        []string       `json:"roleAttributes" kind:"attributes"`
	AppData               jsontext.Value `json:"appData" kind:"nofilter"`
	IsVerified            bool           `json:"isVerified" kind:"server"`
	Fingerprint           string         `json:"fingerprint" kind:"server,unique,omit"`
	CertPEM               string         `json:"certPem" kind:"server,nullable,nofilter"`
	UnverifiedFingerprint string         `json:"unverifiedFingerprint" kind:"server,nullable,nofilter"`
	UnverifiedCertPEM     string         `json:"unverifiedCertPem" kind:"server,nullable,nofilter"`
}

// EdgeRouters is the kind.
var EdgeRouters = kind.Define(kind.Spec[EdgeRouter]{
	Name:  "edge-router",
	Path:  "edge-routers",
	Doc:   "Create an edge router: a router that clients connect to.",
	Links: []string{"edge-router-policies"},
})

// Saved keeps what every edge router has beside it: its entry among all
// routers, and what lets it act as a client of the network.
func (e *EdgeRouter) Saved(w kind.Writer, _ *EdgeRouter) error {
	err := upsert(w, Routers, e.ID, func(r *Router) {
		r.Name, r.Cost, r.Disabled, r.NoTraversal = e.Name, e.Cost, e.Disabled, e.NoTraversal
		r.IsVerified, r.Fingerprint, r.IsEdge = e.IsVerified, e.Fingerprint, true
		r.UnverifiedFingerprint, r.UnverifiedCertPEM = e.UnverifiedFingerprint, e.UnverifiedCertPEM
	})
	if err != nil {
		return err
	}
	if !e.IsTunnelerEnabled {
		return e.dropTunneler(w)
	}
	err = upsert(w, Identities, e.ID, func(i *Identity) {
		if i.Type == "" {
			i.Type, i.AuthPolicyID, i.DefaultHostingPrecedence = TypeRouter, DefaultAuthPolicy, "default"
		}
		i.Name = e.Name
	})
	if err != nil {
		return err
	}
	return upsert(w, EdgeRouterPolicies, e.ID, func(p *EdgeRouterPolicy) {
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

	Name                  string `json:"name" kind:"required,unique,range=1..256"`
	Cost                  int    `json:"cost" kind:"range=0..65535"`
	Disabled              bool   `json:"disabled"`
	NoTraversal           bool   `json:"noTraversal"`
	IsVerified            bool   `json:"isVerified" kind:"server"`
	Fingerprint           string `json:"fingerprint" kind:"server,unique"`
	UnverifiedFingerprint string `json:"unverifiedFingerprint" kind:"server,nullable,nofilter"`
	UnverifiedCertPEM     string `json:"unverifiedCertPem" kind:"server,nullable,nofilter"`
	IsEdge                bool   `json:"isEdge" kind:"server,hidden,nofilter"`
}

// Routers is the kind.
var Routers = kind.Define(kind.Spec[Router]{
	Name: "router",
	Path: "routers",
	Doc:  "Create a router that carries traffic between other routers.",
})

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

// upsert creates or changes the record with an id.
func upsert[T any](w kind.Writer, k *kind.Kind[T], id string, change func(*T)) error {
	if _, there := k.Get(w, id); there {
		return k.Edit(w, id, func(rec *T) error {
			change(rec)
			return nil
		})
	}
	rec := new(T)
	any(rec).(kind.Record).Base().ID = id
	change(rec)
	return k.Create(w, rec)
}

// drop deletes the record with an id, if there is one.
func drop[T any](w kind.Writer, k *kind.Kind[T], id string) error {
	if _, there := k.Get(w, id); !there {
		return nil
	}
	return k.Delete(w, id)
}
