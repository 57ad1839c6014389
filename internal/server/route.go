package server

import (
	"net/http"
	"strings"

	"netkeep/internal/api"
	"netkeep/internal/rest"
)

// router sends each request to the API that it is meant for. Paths outside of
// both belong to the Client API: clients look for some things at the root.
type router struct {
	client, management *rest.API
	instance           string // changes at every start, so that clients notice
	version            string
}

func (h *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ziti-instance-id", h.instance)
	w.Header().Set("Server", "netkeep/"+h.version)
	path := r.URL.Path
	if rest, ok := below(path, api.ManagementRoot); ok {
		h.management.Serve(w, r, rest)
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

// below returns what of a path is under root.
func below(path, root string) (string, bool) {
	rest, ok := strings.CutPrefix(path, root)
	return rest, ok && (rest == "" || rest[0] == '/')
}
