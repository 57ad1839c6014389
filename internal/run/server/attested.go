package server

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/pki"
)

// attestedFile is where in the data directory it is said which keys and certificates
// the audit log was told of last: some change while no controller runs.
const attestedFile = "attested"

// attested is which keys and certificates those are.
type attested struct {
	Keys         map[string]string `json:"keys"`         // by what people call them
	Certificates map[string]string `json:"certificates"` // serial numbers, by what they are for
}

// attest has the audit log tell of keys of the network and of certificates of this
// controller that are not those of before. What there is at a first start is no change.
func (s *Server) attest() {
	s.attesting.Lock()
	defer s.attesting.Unlock()
	if err := s.noteKeys(); err != nil {
		s.log.Warn("which keys are in force could not be compared with what the audit log was told of", "error", err)
	}
}

func (s *Server) noteKeys() error {
	dir := s.dir.sub(keysDir)
	keys, err := pki.ReadBundle(dir)
	if err != nil {
		return err
	}
	own, err := pki.Own(dir)
	if err != nil {
		return err
	}
	before, err := said[attested](s.dir.path, attestedFile)
	if err != nil {
		s.log.Warn("what the audit log was told of keys and certificates is not known any more", "error", err)
	}
	now := attested{Keys: keyNames(keys), Certificates: map[string]string{}}
	for what, leaf := range own {
		now.Certificates[what] = fmt.Sprintf("%x", leaf.SerialNumber)
	}
	if before != nil {
		s.noteChanged(*before, now, own)
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return s.dir.note(attestedFile, string(text))
}

// noteChanged has the log tell of what differs.
func (s *Server) noteChanged(before, now attested, own map[string]*x509.Certificate) {
	here := audit.Target{Kind: model.Controllers.Def.Name, ID: s.roster.ID(), Name: s.roster.ID()}
	if words := differing(before.Keys, now.Keys); words != "" {
		s.recorder.Note(audit.Fact{Event: audit.KeysChanged, By: state.Program("keys"), Target: here, Reason: words})
	}
	for _, what := range slices.Sorted(maps.Keys(own)) {
		if serial := now.Certificates[what]; serial != before.Certificates[what] {
			s.recorder.Note(audit.Fact{
				Event: audit.Issued, By: state.Program("keys"), Target: here,
				Reason: fmt.Sprintf("%s: serial number %s, until %s", what, serial, own[what].NotAfter.UTC().Format(time.RFC3339)),
			})
		}
	}
}

// keyNames are the keys of a network, as people know them.
func keyNames(b pki.Bundle) map[string]string {
	names := map[string]string{"session key": b.SecretID(pki.SessionSecret), "seal key": b.SecretID(pki.SealSecret), "waiting": b.Next()}
	a, cluster := b.Authorities(), b.Cluster()
	for name, cert := range map[string]*x509.Certificate{
		"root CA": a.Root, "intermediate CA": a.Intermediate, "root CA of before": a.FormerRoot,
		"cluster CA": cluster.Current, "cluster CA of before": cluster.Former,
	} {
		if cert != nil {
			names[name] = rootName(cert)[:16]
		}
	}
	for name, secret := range map[string]string{"session key of before": pki.SessionSecret, "seal key of before": pki.SealSecret} {
		if b.Turning(secret) {
			names[name] = "still good"
		}
	}
	maps.DeleteFunc(names, func(_, name string) bool { return name == "" })
	return names
}

// differing says in words what has changed; nothing if nothing has.
func differing(before, now map[string]string) string {
	all := maps.Clone(before)
	maps.Copy(all, now)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch was, is := before[name], now[name]; {
		case was == is:
		case is == "":
			words = append(words, name+" no more")
		default:
			words = append(words, name+" "+is)
		}
	}
	return strings.Join(words, "; ")
}
