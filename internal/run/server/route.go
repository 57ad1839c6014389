package server

import (
	"net/http"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/egress"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/console"
	"netkeep.internal/internal/web/oidc"
	"netkeep.internal/internal/web/rest"
	"netkeep.internal/internal/web/signon"
)

// apis sends each request to the API that it is meant for. Paths outside of
// all belong to the Client API: clients look for some things at the root. An
// API that is nil is not here, and its paths are not found. The Fabric API and the
// console are where the Management API is.
type apis struct {
	client, management, fabric *rest.API
	// public answers what anybody may know of a controller, where the Client API
	// is not; nil where it is.
	public *rest.API
	// console is the pages for people; nil where they are not.
	console http.Handler
	// oidc is where clients log in by OpenID Connect; nil where they do not.
	oidc     http.Handler
	instance string // changes at every start, so that clients notice
	version  string
	// review has streams look whether they may go on.
	review func(before, after *state.Snapshot, changed []state.Ref)
}

// clientOnly is what is on a listener without the Management API.
func (h *apis) clientOnly() *apis {
	return &apis{client: h.client, oidc: h.oidc, instance: h.instance, version: h.version}
}

// managementOnly is what is on a listener for the Management API alone.
func (h *apis) managementOnly() *apis {
	return &apis{management: h.management, fabric: h.fabric, public: h.client, console: h.console, oidc: h.oidc, instance: h.instance, version: h.version}
}

// isPublic reports whether a path is of what those look for first who are to
// use a controller: which version it is, what it offers, and whom to trust.
func isPublic(path string) bool {
	_, spec := below(path, "/specs")
	return spec || path == "/version" || path == "/.well-known/est/cacerts"
}

func (h *apis) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ziti-instance-id", h.instance)
	w.Header().Set("Server", "netkeep/"+h.version)
	path := r.URL.Path
	if h.console != nil && console.Below(path) {
		h.console.ServeHTTP(w, r)
		return
	}
	if _, ok := below(path, oidc.Root); ok && h.oidc != nil {
		h.oidc.ServeHTTP(w, r)
		return
	}
	admins, rest, ok := h.forAdmins(path)
	switch {
	case ok && admins != nil:
		admins.Serve(w, r, rest)
		return
	case h.public != nil && isPublic(path):
		h.public.Serve(w, r, path)
		return
	case h.client == nil:
		h.management.Missing(w, r)
		return
	case ok:
		h.client.Missing(w, r)
		return
	}
	for _, root := range []string{api.ClientRoot, "/edge/v1"} {
		if rest, ok := below(path, root); ok {
			h.client.Serve(w, r, rest)
			return
		}
	}
	h.client.Serve(w, r, path)
}

// forAdmins returns which API for admins a path is of and what it is below its
// root; ok is false if it is of none.
func (h *apis) forAdmins(path string) (a *rest.API, under string, ok bool) {
	if rest, ok := below(path, api.ManagementRoot); ok {
		return h.management, rest, true
	}
	rest, ok := below(path, api.FabricRoot)
	return h.fabric, rest, ok
}

// below returns what of a path is under root.
func below(path, root string) (string, bool) {
	rest, ok := strings.CutPrefix(path, root)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// newConsole returns the pages over the APIs.
func (s *Server) newConsole(h *apis) http.Handler {
	t := s.cfg.Timeouts
	out := egress.New(egress.Options{Strict: s.cfg.Egress.Strict})
	return &console.Console{
		APIs: h, ManagementRoot: api.ManagementRoot, FabricRoot: api.FabricRoot, Fields: h.management.Fields, Kinds: s.state.Kinds(),
		Bodies: h.management.Bodies, Pace: limit.Pace{First: t.Body, Least: leastRate, Last: t.Read}, MaxBody: int64(s.cfg.Limits.Body),
		Version: build.Version, Now: time.Now, Log: s.log,
		ClientRoot: api.ClientRoot, Admits: (&admits{state: s.state, now: time.Now}).Admin, SignOn: &signon.Desk{Get: out.Get, Post: out.Post, Keys: s.signOnKeys, Now: time.Now}, Away: &limit.Slots{Max: maxAway, Each: maxAwayEach},
	}
}

// How many people may be asked about at identity providers at once, and how many of
// them from one address: each may take as long as the provider likes, within bounds.
const (
	maxAway     = 64
	maxAwayEach = 8
)

// signOnKeys seal what browsers keep of logins at identity providers.
func (s *Server) signOnKeys() ([][]byte, error) {
	keys, err := s.keys.MACKeys("logins at providers")
	return keys.All(), err
}
