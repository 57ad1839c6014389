package terminator

import (
	"bytes"
	"encoding/hex"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/wire/message"
)

// KeySize is how many bytes the public key of a host has.
const KeySize = 32

// Pin notes with which key an API session hosts, as its holder said without a
// router between. From then on no router can offer it with another; what one
// did before is taken out.
func Pin(tx *state.Tx, apiSessionID string, key []byte) error {
	err := model.APISessions.Edit(tx, apiSessionID, func(s *model.APISession) error {
		s.HostKey = hex.EncodeToString(key)
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
	if !ok || api.HostKey == "" || key == nil || hex.EncodeToString(key) == api.HostKey {
		return nil
	}
	return errForged
}

var errForged = permit.Refuse(message.CodeInvalidTerminator, "the host has told the controller another key than the router says")

// hostKey is what terminators with one key for one service are found by.
func hostKey(serviceID string, key []byte) string {
	if key == nil {
		return ""
	}
	return serviceID + " " + hex.EncodeToString(key)
}

// HasKey reports whether a service is hosted with a key. If it is not, routers
// may still host it themselves, with a key that is another for every circuit.
func HasKey(r kind.Reader, serviceID string, key []byte) (hosted, routers bool) {
	for range model.Terminators.Select(r, "hostKey", hostKey(serviceID, key)) {
		return true, false
	}
	for t := range model.Terminators.Select(r, "service", serviceID) {
		// One that was written down before there was an index.
		if t.HostKey == "" && bytes.Equal(t.Told(message.PeerPublicKey), key) {
			return true, false
		}
		routers = routers || t.Binding == BindingTunnel
	}
	return false, routers
}
