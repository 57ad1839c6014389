package client

import (
	"encoding/hex"
	"net/http"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/terminator"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// hostKeyIn is the key that a client hosts with.
type hostKeyIn struct {
	Key string `json:"key" kind:"required" doc:"Public key with which what is hosted in this session is encrypted from end to end: X25519, 32 bytes in hexadecimal."`
}

// hostKeyOut says what is known of a key.
type hostKeyOut struct {
	Hosted  bool `json:"hosted" doc:"Whether somebody hosts the service with the key."`
	Routers bool `json:"routers" doc:"Whether nobody does, and routers host the service themselves, with a key that is another for every connection."`
}

func readKey(field, text string) ([]byte, error) {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != terminator.KeySize {
		return nil, fault.Invalid(field, "must be 32 bytes in hexadecimal", text)
	}
	return key, nil
}

// mountHostKeys lets those who host say with which key, and those who dial ask,
// without a router between that could put its own in its place.
func mountHostKeys(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodPut, Path: "/current-api-session/host-key", Name: "setHostKey", Tag: "current-api-session",
		Doc:  "Say with which key this session hosts. Routers cannot offer it with another from then on. The connection must present the certificate that the session was opened with.",
		Auth: rest.Full,
	}, func(c *rest.Call, in hostKeyIn) (rest.Empty, error) {
		key, err := readKey("key", in.Key)
		if err != nil {
			return rest.Empty{}, err
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
		Method: http.MethodGet, Path: "/services/{id}/host-keys/{key}", Name: "detailServiceHostKey", Tag: "services",
		Doc: "Ask whether a service that the caller may use is hosted with a key.", Auth: rest.Full,
	}, func(c *rest.Call, _ rest.None) (hostKeyOut, error) {
		service, err := seen(s, c)
		if err != nil {
			return hostKeyOut{}, err
		}
		key, err := readKey("key", c.Param("key"))
		if err != nil {
			return hostKeyOut{}, err
		}
		hosted, routers := terminator.HasKey(c.Snap, service.Base().ID, key)
		return hostKeyOut{hosted, routers}, nil
	})
}
