package terminator

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"

	"netkeep/internal/data/state"
	"netkeep/internal/fabric/permit"
	"netkeep/internal/lang/kind"
	"netkeep/internal/line/message"
	"netkeep/internal/model"
)

// KeySize is how many bytes the public key of a host has.
const KeySize = 32

// Pin notes with which key an API session hosts, as its holder said without a
// router between. From then on no router can offer it with another; what one
// did before is taken out.
func Pin(tx *state.Tx, apiSessionID string, key []byte) error {
	err := model.APISessions.Edit(tx, apiSessionID, func(s *model.APISession) error {
		s.HostKey = base64.StdEncoding.EncodeToString(key)
		return nil
	})
	if err != nil {
		return err
	}
	var others []string
	for s := range model.Sessions.Select(tx, "apiSessionId", apiSessionID) {
		for t := range model.Terminators.Select(tx, "sessionId", s.ID) {
			if k := t.Told(message.PeerPublicKey); k != nil && !bytes.Equal(k, key) {
				others = append(others, t.ID)
			}
		}
	}
	for _, id := range others {
		if err := model.Terminators.Delete(tx, id); err != nil {
			return err
		}
	}
	return nil
}

// pinned refuses a terminator whose key is not the one that its host has said.
// One without a key offers no encryption, and nobody takes it for encrypted.
func pinned(r kind.Reader, s *model.Session, t *model.Terminator) error {
	api, ok := model.APISessions.Get(r, s.APISessionID)
	key := t.Told(message.PeerPublicKey)
	if !ok || api.HostKey == "" || key == nil || base64.StdEncoding.EncodeToString(key) == api.HostKey {
		return nil
	}
	return errForged
}

var errForged = permit.Refuse(message.CodeInvalidTerminator, "the host has told the controller another key than the router says")

// Keys are those with which a service is hosted, each once, and whether routers
// host it themselves, with a key that is another for every circuit.
func Keys(r kind.Reader, serviceID string) (keys []string, routers bool) {
	all := map[string]bool{}
	for t := range model.Terminators.Select(r, "service", serviceID) {
		if key := t.Told(message.PeerPublicKey); key != nil {
			all[base64.StdEncoding.EncodeToString(key)] = true
		} else {
			routers = routers || t.Binding == BindingTunnel
		}
	}
	return slices.Sorted(maps.Keys(all)), routers
}
