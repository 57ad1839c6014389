package client

import (
	"encoding/base64"
	"net/http"

	"netkeep/internal/data/state"
	"netkeep/internal/fabric/terminator"
	"netkeep/internal/lang/fault"
	"netkeep/internal/model"
	"netkeep/internal/pki"
	"netkeep/internal/web/api"
	"netkeep/internal/web/rest"
)

// hostKeyIn is the key that a client hosts with.
type hostKeyIn struct {
	Key string `json:"key" kind:"required" doc:"Public key with which what is hosted in this session is encrypted from end to end: X25519, 32 bytes in base64."`
}

// hostKeysOut are the keys of all who host a service.
type hostKeysOut struct {
	Keys    []string `json:"keys" doc:"Public keys of those who host the service, in base64; who dials it should be answered with one of them."`
	Routers bool     `json:"routers" doc:"Whether routers host the service themselves, with a key that is another for every connection."`
}

// mountHostKeys lets those who host and those who dial learn each other's keys
// without a router between, which could put its own in their place.
func mountHostKeys(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPut, Path: "/current-api-session/host-key", Name: "setHostKey", Tag: "current-api-session",
		Doc:  "Say with which key this session hosts. Routers cannot offer it with another from then on. The connection must present the certificate that the session was opened with.",
		Auth: rest.Full,
	}, func(c *rest.Call, in hostKeyIn) (rest.Empty, error) {
		key, err := base64.StdEncoding.DecodeString(in.Key)
		if err != nil || len(key) != terminator.KeySize {
			return rest.Empty{}, fault.Invalid("key", "must be 32 bytes in base64", in.Key)
		}
		own := api.Caller(c).Session()
		// The token alone is not enough: routers know it.
		by, ok := model.Authenticators.Get(c.Snap, own.AuthenticatorID)
		if shown := c.Certificates(); !ok || by.Fingerprint == "" || len(shown) == 0 || pki.Fingerprint(shown[0]) != by.Fingerprint {
			return rest.Empty{}, fault.New(fault.CodeUnauthorized, "the connection must present the certificate that the session was opened with")
		}
		return rest.Empty{}, c.State.Update(c.Context(), c.Author(), func(tx *state.Tx) error {
			return terminator.Pin(tx, own.ID, key)
		})
	})
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/services/{id}/host-keys", Name: "listServiceHostKeys", Tag: "services",
		Doc: "List the keys of those who host a service that the caller may use.", Auth: rest.Full,
	}, func(c *rest.Call, _ rest.None) (hostKeysOut, error) {
		service, err := seen(s, c)
		if err != nil {
			return hostKeysOut{}, err
		}
		keys, routers := terminator.Keys(c.Snap, service.Base().ID)
		return hostKeysOut{keys, routers}, nil
	})
}
