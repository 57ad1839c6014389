// Package takeover makes our records of those that an OpenZiti controller kept: which of
// theirs becomes which of ours, what has no home here and what people should know before.
// It reads through zitidb and ziticonf, writes through a state that it is given, and knows
// nothing of data directories, servers or commands.
package takeover

import (
	"context"
	"crypto/x509"
	"iter"
	"slices"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/takeover/ziticonf"
	"netkeep.internal/internal/takeover/zitidb"
)

// Network is what a controller kept, as records of ours in an order in which they can be
// written.
type Network struct {
	Settings *ziticonf.Settings
	Report   Report
	items    []item
}

// item is one record.
type item struct {
	def  *kind.Def
	rec  kind.Record
	name string
}

// reading is what is known while records are read.
type reading struct {
	db  *zitidb.DB
	net *Network
	now time.Time

	cas        []authority // of others
	services   map[string]bool
	configs    map[string]string // id to type
	routers    map[string]bool
	edges      map[string]string // id to name
	identities map[string]*model.Identity
	checks     map[string]bool
	owned      map[string]bool // identities with a way in of their own
	certs      map[string]int  // how many certificates an identity has
	names      map[string]bool // of the controller
	shown      map[string]*model.Authenticator
	clients    map[string]model.SDKInfo       // by identity
	hosts      map[[2]string][]*model.Session // to host, by identity and service
}

// Read reads all records of a database whose controller had these settings.
func Read(db *zitidb.DB, s *ziticonf.Settings, now time.Time) (*Network, error) {
	r := &reading{
		db: db, net: &Network{Settings: s}, now: now, services: map[string]bool{}, configs: map[string]string{}, routers: map[string]bool{}, edges: map[string]string{},
		identities: map[string]*model.Identity{}, checks: map[string]bool{}, owned: map[string]bool{}, certs: map[string]int{}, names: map[string]bool{},
		shown: map[string]*model.Authenticator{}, clients: map[string]model.SDKInfo{}, hosts: map[[2]string][]*model.Session{},
	}
	r.net.Report.Database, r.net.Report.Version, r.net.Report.Controller = s.Database, db.Version, s.ID
	for _, name := range s.DNSNames {
		r.names[model.HostName(name)] = true
	}
	for _, ip := range s.IPs {
		r.names[model.HostName(ip.String())] = true
	}
	for _, step := range []func() error{
		r.readCAs, r.readSigners, r.readAuthPolicies, r.readConfigTypes, r.readConfigs, r.readServices, r.readRouters, r.readIdentities,
		r.readAuthenticators, r.readMFAs, r.readEnrollments, r.readPostureChecks, r.readPolicies, r.readSessions, r.readTerminators, r.readRest,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	r.nameIssuers()
	return r.net, nil
}

// each hands over every record of a store.
func each[T any](r *reading, s zitidb.Store[T], do func(*T)) error {
	for rec, err := range s.All(r.db) {
		if err != nil {
			return err
		}
		do(rec)
	}
	return nil
}

// meta is what every record has.
func (r *reading) meta(path string, c zitidb.Common) kind.Meta {
	return kind.Meta{ID: c.ID, CreatedAt: kind.MomentOf(c.CreatedAt), UpdatedAt: kind.MomentOf(c.UpdatedAt), Tags: r.tags(path, c), System: c.IsSystem}
}

// tags are marks, which are texts, truths or nothing here.
func (r *reading) tags(path string, c zitidb.Common) kind.Tags {
	if len(c.Tags) == 0 {
		return nil
	}
	tags := kind.Tags{}
	for key, value := range c.Tags {
		switch value.(type) {
		case nil, string, bool:
			tags[key] = value
		default:
			tags[key] = string(jsonOf(value))
			r.note(NumericTags, path+"/"+c.ID+" "+key)
		}
	}
	return tags
}

// add has a record be written.
func add[T any](r *reading, k *kind.Kind[T], rec *T, name string) {
	r.net.items = append(r.net.items, item{k.Def, any(rec).(kind.Record), name})
	r.net.Report.count(k.Def.Path).Taken++
}

// leave says that a record is not taken.
func (r *reading) leave(path, id, name, why string) {
	r.net.Report.leave(path, id, name, why)
}

func (r *reading) note(n *notice, about string) { r.net.Report.note(n, about) }

// perWrite is how many records are written at once.
const perWrite = 2000

// Fill writes the records into the state of a new network, and says how far it is. Records
// that our rules refuse are left out, and the report says which.
func (n *Network) Fill(ctx context.Context, st *state.State, progress func(done, all int)) error {
	done := 0
	for part := range slices.Chunk(n.items, perWrite) {
		var refused, gone []Left
		err := st.Update(ctx, state.Program("takeover"), func(tx *state.Tx) error {
			refused, gone = nil, nil
			for _, it := range part {
				err := it.write(tx)
				to := &refused
				if it.passing() {
					to = &gone
				}
				if err != nil {
					*to = append(*to, Left{it.def.Path, it.rec.Base().ID, it.name, err.Error()})
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, l := range refused {
			n.Report.count(l.Kind).Taken--
		}
		n.Report.Refused = append(n.Report.Refused, refused...)
		for _, l := range gone { // whoever it is logs in again
			n.Report.count(l.Kind).Taken--
			n.Report.leave(l.Kind, l.ID, l.Name, l.Why)
		}
		done += len(part)
		progress(done, len(n.items))
	}
	return nil
}

// passing reports whether a record comes and goes with the use of the network.
func (it item) passing() bool {
	t, is := it.rec.(*model.Terminator)
	return it.def.Lane == kind.Session || is && t.SessionID != ""
}

// write stores a copy of the record: a write may have to be run again.
func (it item) write(tx *state.Tx) error {
	if it.def == model.ConfigTypes.Def {
		// A type that is built in here under another id gives way.
		if other, taken := model.ConfigTypes.Find(tx, "name", it.name); taken && other.ID != it.rec.Base().ID {
			if err := model.ConfigTypes.Delete(tx, other.ID); err != nil {
				return err
			}
		}
	}
	return tx.Adopt(it.def, it.def.Clone(it.rec))
}

// Keys are those of the network.
func (n *Network) Keys() pki.Elsewhere {
	s := n.Settings
	return pki.Elsewhere{Signing: s.Signing, Key: s.SigningKey, ServerKey: s.ServerKey, Anchors: s.Anchors}
}

// RenameController says that the controller gets another id than it had.
func (n *Network) RenameController() { n.Report.note(ControllerID, n.Settings.ID) }

// leaf returns the first certificate of a PEM text, nil if there is none that can be read.
func leaf(text string) *x509.Certificate {
	certs, err := pki.ParseCertificates([]byte(text), maxChain)
	if err != nil {
		return nil
	}
	return certs[0]
}

// maxChain is how many certificates may follow one another in a record.
const maxChain = 20

// filtered returns those of a list that something holds of, and tells of the others.
func filtered(list []string, ok func(string) bool, gone func(string)) []string {
	var kept []string
	for _, s := range list {
		if ok(s) {
			kept = append(kept, s)
		} else {
			gone(s)
		}
	}
	return kept
}

// values yields what a map has, in the order of its keys.
func values[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		keys := make([]string, 0, len(m))
		for key := range m {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			if !yield(key, m[key]) {
				return
			}
		}
	}
}
