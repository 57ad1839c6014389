package takeover

import (
	"encoding/binary"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/takeover/zitidb"
)

func (r *reading) readConfigTypes() error {
	return each(r, zitidb.ConfigTypes, func(c *zitidb.ConfigType) {
		rec := &model.ConfigType{Meta: r.meta("config-types", c.Common), Name: c.Name}
		rec.System = false
		if schema := strings.TrimSpace(text(c.Schema)); schema != "" && schema != "null" {
			rec.Schema = jsontext.Value(schema)
		}
		add(r, model.ConfigTypes, rec, c.Name)
	})
}

func (r *reading) readConfigs() error {
	return each(r, zitidb.Configs, func(c *zitidb.Config) {
		r.configs[c.ID] = c.TypeID
		data := jsontext.Value("{}")
		if c.Data != nil {
			data = jsonOf(c.Data)
		}
		add(r, model.Configs, &model.Config{Meta: r.meta("configs", c.Common), Name: c.Name, ConfigTypeID: c.TypeID, Data: data}, c.Name)
	})
}

func (r *reading) readServices() error {
	return each(r, zitidb.Services, func(s *zitidb.Service) {
		if s.Edge == nil {
			// A policy for all services would give it to everybody, and there was none for it.
			r.leave("services", s.ID, s.Name, "it is of the fabric alone, and no policy was ever about it; create it anew if identities are to use it")
			return
		}
		r.services[s.ID] = true
		rec := model.Services.New()
		rec.Meta, rec.Name, rec.EncryptionRequired = r.meta("services", s.Common), s.Name, unless(s.Edge.EncryptionRequired)
		rec.MaxIdleTimeMillis, rec.RoleAttributes = int64(s.MaxIdle/time.Millisecond), said(s.Edge.RoleAttributes)
		if s.TerminatorStrategy != "" {
			rec.TerminatorStrategy = s.TerminatorStrategy
		}
		rec.Configs = said(filtered(s.Edge.Configs, func(id string) bool { return r.configs[id] != "" }, func(id string) {
			r.note(Dangling, "services/"+s.ID+" configs "+id)
		}))
		add(r, model.Services, rec, s.Name)
	})
}

func (r *reading) readRouters() error {
	return each(r, zitidb.Routers, func(t *zitidb.Router) {
		at := "routers/" + t.ID + " " + t.Name
		if len(t.Interfaces) > 0 {
			r.note(NoField, at+" interfaces")
		}
		if len(t.CtrlChanListeners) > 0 {
			r.note(NoField, at+" ctrlChanListeners")
		}
		r.routers[t.ID] = true
		rec := model.Routers.New()
		rec.Meta, rec.Name, rec.Cost, rec.Disabled, rec.NoTraversal = r.meta("routers", t.Common), t.Name, int(t.Cost), t.Disabled, t.NoTraversal
		rec.Fingerprint = text(t.Fingerprint)
		rec.IsVerified = rec.Fingerprint != ""
		switch {
		case t.Edge != nil:
			rec.IsEdge, rec.IsVerified = true, t.Edge.IsVerified
			rec.CertPEM, rec.UnverifiedFingerprint, rec.UnverifiedCertPEM = first(text(t.Edge.CertPEM)), text(t.Edge.UnverifiedFingerprint), first(text(t.Edge.UnverifiedCertPEM))
			r.routerNames(rec, at)
			r.addEdgeRouter(t, rec)
		case t.Transit != nil:
			rec.IsVerified = t.Transit.IsVerified
			rec.UnverifiedFingerprint, rec.UnverifiedCertPEM = text(t.Transit.UnverifiedFingerprint), first(text(t.Transit.UnverifiedCertPEM))
		}
		add(r, model.Routers, rec, t.Name)
	})
}

// routerNames lets a router keep names that its certificate has although they are the
// controller's.
func (r *reading) routerNames(rec *model.Router, at string) {
	cert := leaf(rec.CertPEM)
	if cert == nil {
		return
	}
	if pki.Usable(cert) != nil {
		r.note(WeakKeys, at)
	}
	names := append([]string(nil), cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	for _, name := range names {
		host := model.HostName(name)
		rec.CertNames = append(rec.CertNames, host)
		if r.names[host] && host != "localhost" && !strings.HasPrefix(host, "127.") && host != "::1" {
			rec.AllowedNames = append(rec.AllowedNames, host)
			r.note(RouterNames, at+" "+host)
		}
	}
}

func (r *reading) addEdgeRouter(t *zitidb.Router, rec *model.Router) {
	r.edges[t.ID] = t.Name
	e := model.EdgeRouters.New()
	e.Meta, e.Name, e.Cost, e.Disabled, e.NoTraversal = rec.Meta, rec.Name, rec.Cost, rec.Disabled, rec.NoTraversal
	e.IsTunnelerEnabled, e.RoleAttributes = t.Edge.IsTunnelerEnabled, said(t.Edge.RoleAttributes)
	if len(t.Edge.AppData) > 0 {
		e.AppData = jsonOf(t.Edge.AppData)
	}
	e.AllowedNames, e.IsVerified, e.Fingerprint, e.CertPEM = rec.AllowedNames, rec.IsVerified, rec.Fingerprint, rec.CertPEM
	e.UnverifiedFingerprint, e.UnverifiedCertPEM = rec.UnverifiedFingerprint, rec.UnverifiedCertPEM
	add(r, model.EdgeRouters, e, t.Name)
}

// first is the first certificate of a text alone.
func first(text string) string {
	if cert := leaf(text); cert != nil {
		return string(pki.EncodeCertificates(cert))
	}
	return ""
}

// Bindings of terminators that their hosts make anew, if their sessions do not come along:
// where those do, hosts do not notice.
var passing = map[string]bool{"edge": true, "tunnel": true}

func (r *reading) readTerminators() error {
	return each(r, zitidb.Terminators, func(t *zitidb.Terminator) {
		with := r.hosting(t)
		switch {
		case passing[t.Binding] && (with == nil || t.Binding != "edge" || t.ID != t.Address):
			return // its host makes it anew
		case !r.services[t.ServiceID] || !r.routers[t.RouterID]:
			r.leave("terminators", t.ID, t.Address, "its service or router is not taken")
			return
		}
		rec := model.Terminators.New()
		rec.Meta, rec.ServiceID, rec.RouterID, rec.Binding, rec.Address = r.meta("terminators", t.Common), t.ServiceID, t.RouterID, t.Binding, t.Address
		rec.Identity, rec.IdentitySecret, rec.HostID, rec.Cost = t.InstanceID, t.InstanceSecret, t.HostID, int(t.Cost)
		if t.Precedence != "" {
			rec.Precedence = t.Precedence
		}
		for key, value := range values(t.PeerData) {
			if len(key) == 4 {
				rec.PeerData = append(rec.PeerData, model.PeerDatum{Key: int(binary.LittleEndian.Uint32([]byte(key))), Value: value})
			}
		}
		if passing[t.Binding] {
			rec.SessionID = with.ID
		}
		add(r, model.Terminators, rec, t.Address)
	})
}
