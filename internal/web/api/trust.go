package api

import (
	"net/http"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/rest"
)

// networkOut is a token that leads to the network.
type networkOut struct {
	Name  string `json:"name" doc:"What the network is called; there is one, called default."`
	Token string `json:"token" doc:"The address of the controller, signed by it, by which a client that is to log in there can tell that it is the right one. It lets nobody in."`
}

var networkOutput = kind.NewOutput[networkOut]()

// mountTrust tells those who come for the first time whom to trust. It opens
// nothing, and they may be anybody.
func mountTrust(a *rest.API, s *Service) {
	caCerts := rest.Op{
		Method: http.MethodGet, Path: "/.well-known/est/cacerts", Name: "listWellKnownCas", Tag: "informational",
		Doc: "Get the certificates to trust, as a base64 PKCS #7 bundle.", Auth: rest.Anonymous, Types: []string{"application/pkcs7-mime"},
	}
	rest.Handle(a, caCerts, func(c *rest.Call, _ rest.None) (rest.File, error) {
		text, err := pki.PKCS7Text(s.Bundle())
		c.Header().Set("Content-Transfer-Encoding", "base64")
		return rest.File{Type: "application/pkcs7-mime", Body: text}, err
	})
	networks := rest.Op{
		Method: http.MethodGet, Path: "/network-jwts", Name: "listNetworkJWTs", Tag: "informational",
		Doc: "List tokens that lead clients to the network without letting them in.", Auth: rest.Anonymous, Entries: networkOutput.Schema(),
	}
	rest.Handle(a, networks, func(*rest.Call, rest.None) (rest.List, error) {
		token, err := s.Issuer.NetworkToken()
		if err != nil {
			return rest.List{}, err
		}
		out := networkOut{"default", token}
		return rest.List{Page: filter.Page{Limit: filter.DefaultLimit}, Total: 1, Fields: []string{}, Len: 1, Append: func(dst []byte, _ int) []byte { return networkOutput.Append(dst, &out) }}, nil
	})
}
