package fabric

import (
	"encoding/hex"
	"net/http"
	"strings"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// routerIn is what a create of a router may hold beyond its fields.
type routerIn struct {
	ID          string `json:"id" kind:"range=1..64" doc:"Id of the new router, which its certificate names; one is made if not given."`
	Fingerprint string `json:"fingerprint" kind:"range=0..59" doc:"SHA-1 of the certificate that the router connects with, in hexadecimal, if it has one of this network; it is invited to enroll if not given. To give one needs the power router:reveal too."`
}

// routerEdit is what a change of a router may hold beyond its fields.
type routerEdit struct {
	Fingerprint string `json:"fingerprint" kind:"range=0..59" doc:"SHA-1 of the certificate that the router connects with from now on, in hexadecimal; it stays as it is if not given, or if it is an edge router's. To change it needs the power router:reveal too."`
}

var (
	routerInput     = kind.NewInput[routerIn]()
	routerEditInput = kind.NewInput[routerEdit]()
)

// routerMembers are those that clients of this API know of a router.
var routerMembers = []string{"name", "cost", "disabled", "noTraversal", "tags"}

var (
	// edgeRouters is where edge routers are changed: what is here is their entry among
	// all routers.
	edgeRouters    = &rest.Mounted{Resource: rest.Resource{Kind: model.EdgeRouters.Def}}
	routerPhrasing = &rest.Phrasing{
		Resets: routerMembers, Edits: routerEditInput.Fields, Adjust: adjustRouter,
		Stead: func(rec kind.Record) *rest.Mounted {
			if rec.(*model.Router).IsEdge {
				return edgeRouters
			}
			return nil
		},
	}
	routerDocs = map[kind.Verbs]string{
		kind.Creates:  "Create a router that carries traffic between other routers, with a certificate that it has already or else with an invitation to enroll.",
		kind.Replaces: "Replace the fields of one of the routers that clients of this API know; an edge router is changed as such, and what else it has stays.",
		kind.Patches:  "Change fields of one of the routers; an edge router is changed as such.",
	}
	servicePhrasing = &rest.Phrasing{Usual: true, Resets: []string{"terminatorStrategy", "tags"}}
	serviceDocs     = map[kind.Verbs]string{
		kind.Creates:  "Create a service, as the Management API does: policies with #all are about it from then on.",
		kind.Replaces: "Replace the fields of one of the services that clients of this API know: its name, strategy and tags. What else it has stays.",
	}
)

// prepareRouter gives a new router the certificate that it has, or invites it.
func prepareRouter(s *api.Service) func(*rest.Call, kind.Body, string) (rest.Prepared, error) {
	return func(c *rest.Call, body kind.Body, id string) (rest.Prepared, error) {
		in, err := routerInput.Read(body)
		if err != nil {
			return rest.Prepared{}, err
		}
		if in.ID != "" {
			if id = in.ID; !plainID(id) {
				return rest.Prepared{}, fault.Invalid("id", "must be of letters, digits, dots, dashes and underscores", id)
			}
			if err := unusedID(c.Snap, id); err != nil {
				return rest.Prepared{}, err
			}
		}
		if in.Fingerprint == "" {
			invitation := &model.Enrollment{Method: model.MethodTrOTT, TransitRouterID: id}
			err := s.SignInvitation(invitation, id)
			return rest.Prepared{
				Set: func(rec kind.Record) { rec.Base().ID = id },
				Also: func(tx *state.Tx, _ kind.Body) error {
					fresh := *invitation
					return model.Enrollments.Create(tx, &fresh)
				},
			}, err
		}
		fingerprint, err := readFingerprint(c, in.Fingerprint)
		return rest.Prepared{Set: func(rec kind.Record) {
			r := rec.(*model.Router)
			r.ID, r.Fingerprint, r.IsVerified = id, fingerprint, true
		}}, err
	}
}

// adjustRouter gives a router another certificate.
func adjustRouter(c *rest.Call, body kind.Body) (func(kind.Record) error, error) {
	in, err := routerEditInput.Read(body)
	if err != nil || in.Fingerprint == "" {
		return func(kind.Record) error { return nil }, err
	}
	old, _ := model.Routers.Get(c.Snap, c.Param("id"))
	if old != nil && old.Fingerprint == plainFingerprint(in.Fingerprint) { // who sends back what was shown changes nothing
		return func(kind.Record) error { return nil }, nil
	}
	fingerprint, err := readFingerprint(c, in.Fingerprint)
	return func(rec kind.Record) error {
		r, ok := rec.(*model.Router)
		if !ok {
			return fault.Invalid("fingerprint", "must be left out: the certificate of an edge router is what it enrolls with; use netkeep reenroll edge-router", in.Fingerprint)
		}
		r.Fingerprint, r.IsVerified, r.CertPEM, r.UnverifiedFingerprint, r.UnverifiedCertPEM = fingerprint, true, "", "", ""
		return nil
	}, err
}

// readFingerprint checks who may name a certificate, and that it is nobody else's: who
// has it is the router from then on.
func readFingerprint(c *rest.Call, text string) (string, error) {
	if !c.May("router:reveal") {
		return "", fault.New(fault.CodeUnauthorized, "to say which certificate a router has needs the power router:reveal, and none of your admin roles has it")
	}
	text = plainFingerprint(text)
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != 20 {
		return "", fault.Invalid("fingerprint", "must be the SHA-1 of a certificate: 40 hexadecimal digits", text)
	}
	if _, taken := model.Authenticators.Find(c.Snap, "fingerprint", text); taken {
		return "", fault.Invalid("fingerprint", "must not be that of an identity's certificate", text)
	}
	return text, nil
}

// plainFingerprint writes a fingerprint as the controller does.
func plainFingerprint(text string) string { return strings.ToLower(strings.ReplaceAll(text, ":", "")) }

// plainID reports whether a text may be an id that somebody chose.
func plainID(id string) bool {
	return strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// unusedID refuses the id of anything that a router could be taken for.
func unusedID(snap *state.Snapshot, id string) error {
	for _, d := range []*kind.Def{model.Routers.Def, model.EdgeRouters.Def, model.Identities.Def, model.Controllers.Def} {
		if _, taken := snap.Lookup(d, id); taken {
			return fault.Invalid("id", "must be unique", id)
		}
	}
	return nil
}

// terminatorIn is what a write of a terminator may hold that the controller does not
// take from anybody.
type terminatorIn struct {
	HostID string `json:"hostId" doc:"Id of the identity that hosts the service here; a host says so itself when it comes, so it must be empty."`
}

var terminatorInput = kind.NewInput[terminatorIn]()

var terminatorPhrasing = &rest.Phrasing{
	Usual: true, Names: map[string]string{"instanceId": "identity", "instanceSecret": "identitySecret"},
	Edits: terminatorInput.Fields, Adjust: adjustTerminator,
}

// prepareTerminator refuses a host that somebody else names.
func prepareTerminator(_ *rest.Call, body kind.Body, _ string) (rest.Prepared, error) {
	in, err := terminatorInput.Read(body)
	if err == nil && in.HostID != "" {
		err = fault.Invalid("hostId", "must be empty: a host says who it is when it begins to host", in.HostID)
	}
	return rest.Prepared{}, err
}

// adjustTerminator lets a change repeat the host that there is.
func adjustTerminator(_ *rest.Call, body kind.Body) (func(kind.Record) error, error) {
	in, err := terminatorInput.Read(body)
	return func(rec kind.Record) error {
		if t := rec.(*model.Terminator); in.HostID != "" && in.HostID != t.HostID {
			return fault.Invalid("hostId", "must stay as it is: a host says who it is when it begins to host", in.HostID)
		}
		return nil
	}, err
}

// mountHosts offers the terminators of services and of routers.
func mountHosts(a *rest.API, view *rest.View) {
	for _, of := range []*kind.Def{model.Services.Def, model.Routers.Def} {
		rest.ShowList(a, rest.Op{
			Method: http.MethodGet, Path: "/" + of.Path + "/{id}/terminators", Name: "list" + strings.ToUpper(of.Name[:1]) + of.Name[1:] + "Terminators", Tag: of.Path,
			Doc: "List the terminators of one of the " + of.Path + ".", Auth: rest.Admin, Need: of.Name + ":read",
		}, view, func(c *rest.Call) (rest.Records, error) {
			id := c.Param("id")
			if _, there := c.Snap.Lookup(of, id); !there {
				return nil, fault.NotFound(of.Name, id)
			}
			return func(yield func(kind.Record) bool) {
				for t := range model.Terminators.Select(c.Snap, of.Name, id) {
					if !yield(t) {
						return
					}
				}
			}, nil
		})
	}
}

// snapshotIn says where a copy is to be.
type snapshotIn struct {
	Path string `json:"path" doc:"Where the copy is to be; it must be empty, since the controller writes all to its own directory and says where."`
}

// mountDatabase offers the care of what is stored, as the Management API does.
func mountDatabase(a *rest.API, s *api.Service) {
	api.MountScans(a, s)
	op := func(path, name string) rest.Op {
		return rest.Op{
			Method: http.MethodPost, Path: path, Name: name, Tag: "database", BodyOptional: true,
			Doc: "Write a copy of everything that is stored to the controller's disk.", Auth: rest.Admin, Need: "database:snapshot", Long: true,
		}
	}
	take := func(c *rest.Call, in snapshotIn) (api.SnapshotOut, error) {
		if in.Path != "" {
			return api.SnapshotOut{}, fault.Invalid("path", "must be empty: the controller writes copies to its own directory for them, and the answer says where", in.Path)
		}
		return s.TakeSnapshot(c)
	}
	rest.Handle(a, op("/database", "createDatabaseSnapshot"), take)
	rest.Handle(a, op("/database/snapshot", "createDatabaseSnapshotWithPath"), take)
}
