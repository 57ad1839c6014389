package api

import (
	"iter"
	"strings"
	"sync"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/policy/posture"
	"netkeep.internal/internal/web/rest"
)

// Viewer is how one identity sees services. It is made once a request, so that
// a page of services costs what its services cost.
type Viewer struct {
	snap    *state.Snapshot
	grants  access.Grants
	configs access.Configs
	wanted  func() func(*model.Config) bool // which of them to show
	device  *posture.Evaluator
	checks  map[string][]*model.PostureCheck // by policy
}

// ServiceAsking is what those alone see of a service who run the network: who may ask
// for it, and who decides.
var ServiceAsking = []string{"requests"}

// viewer is the one that a request sees services with.
var viewer rest.Memo[*Viewer]

// View returns how the caller sees services.
func (s *Service) View(c *rest.Call) *Viewer {
	if v, ok := viewer.Of(c); ok {
		return v
	}
	who := Caller(c)
	if who == nil { // a machine, which uses no services
		return s.ViewOf(c, "")
	}
	v := s.ViewOf(c, who.Identity().ID)
	v.device = s.Grants.Device(c.Snap, who.Session())
	return v
}

// ViewOf makes this request see services as some identity does, though with
// the config types that the caller asked for.
func (s *Service) ViewOf(c *rest.Call, identityID string) *Viewer {
	v := &Viewer{
		snap: c.Snap, grants: access.ServicesWithAdmin(c.Snap, identityID), configs: access.ConfigsFor(c.Snap, identityID),
		wanted: sync.OnceValue(func() func(*model.Config) bool { return shownConfigs(c) }), checks: map[string][]*model.PostureCheck{},
		device: s.Grants.Device(c.Snap, &model.APISession{IdentityID: identityID}),
	}
	viewer.Keep(c, v)
	return v
}

// Services is those that the identity may dial or host.
func (v *Viewer) Services() *cow.Bitmap { return v.grants.Visible() }

// Sees reports whether the identity may dial or host the service.
func (v *Viewer) Sees(id string) bool {
	ord, ok := v.snap.Ordinal(model.Services.Def, id)
	return ok && (v.grants.Dial.Contains(ord) || v.grants.Bind.Contains(ord))
}

// Permissions is what the identity may do with a service.
func (v *Viewer) Permissions(service *model.Service) []string {
	return v.grants.Permissions(v.snap, service)
}

// ServiceColumns are what answers show of a service beyond its record, all of
// it as the viewer sees it.
func ServiceColumns(s *Service) []rest.Derived {
	column := func(name, doc string, schema kind.Schema, show func(v *Viewer, dst []byte, service *model.Service) []byte) rest.Derived {
		return rest.Derived{Name: name, Doc: doc, Schema: schema, Append: func(dst []byte, c *rest.Call, rec kind.Record) []byte {
			return show(s.View(c), dst, rec.(*model.Service))
		}}
	}
	config := column("config", "Settings of the service by the name of their config type, as the caller is to use them: those of the config types that were asked for.",
		kind.Schema{"type": "object", "additionalProperties": AnyMap}, (*Viewer).appendConfigs)
	config.Params = []rest.Parameter{configTypesParam}
	return []rest.Derived{
		column("permissions", "What the caller may do with the service: Dial is to use it, Bind to host it.", kind.ListOf(kind.Schema{"type": "string", "enum": []string{model.Bind, model.Dial}}), (*Viewer).appendPermissions),
		config,
		column("postureQueries", "What each policy that gives the service asks of the device, and whether the device passes.", kind.ListOf(posture.QueriesSchema()), (*Viewer).appendQueries),
	}
}

func (v *Viewer) appendPermissions(dst []byte, service *model.Service) []byte {
	dst = append(dst, '[')
	for i, p := range v.Permissions(service) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), p...), '"')
	}
	return append(dst, ']')
}

func (v *Viewer) appendConfigs(dst []byte, service *model.Service) []byte {
	return v.configs.Append(dst, service, v.wanted())
}

// appendQueries adds what each policy that gives the service asks of the
// device, and whether it passes now.
func (v *Viewer) appendQueries(dst []byte, service *model.Service) []byte {
	dst = append(dst, '[')
	for i, p := range v.grants.Over(service) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = v.device.AppendQueries(dst, p.ID, p.Type, v.checksOf(p))
	}
	return append(dst, ']')
}

func (v *Viewer) checksOf(p *model.ServicePolicy) []*model.PostureCheck {
	checks, known := v.checks[p.ID]
	if !known {
		checks = access.Checks(v.snap, p)
		v.checks[p.ID] = checks
	}
	return checks
}

// ServiceSymbols let filters look into the configs of a service, of those that the
// caller may read.
func ServiceSymbols(c *rest.Call) []filter.Symbol[kind.Record] {
	configs, _ := model.Services.Symbols.Lookup("configs")
	symbol := *configs
	symbol.Sub = filter.Through(model.Configs.Symbols, func(rec kind.Record, yield func(kind.Record) bool) {
		for config := range c.Readable(model.Configs.Def, each(c.Snap, model.Configs.Def, rec.(*model.Service).Configs)) {
			if !yield(config) {
				return
			}
		}
	})
	return []filter.Symbol[kind.Record]{symbol}
}

// each yields the records of a kind with these ids.
func each(r kind.Reader, d *kind.Def, ids []string) iter.Seq[kind.Record] {
	return func(yield func(kind.Record) bool) {
		for _, id := range ids {
			if rec, ok := r.Lookup(d, id); ok && !yield(rec) {
				return
			}
		}
	}
}

// RoleParams narrow a list to the records that a role list selects.
var (
	RoleParams = []rest.Parameter{roleFilterParam, roleSemanticParam}

	roleFilterParam = rest.TextsParam("roleFilter",
		"Roles of which entries must have all, or any: #attribute, or @id for a single entry; all entries if not given.", access.WrongRole)
	roleSemanticParam = rest.ChoiceParam("roleSemantic",
		"Whether entries must have all of the roles (AllOf) or any of them (AnyOf); AllOf if not given.", strings.EqualFold, model.AllOf, model.AnyOf)
)

// ByRoles returns the records that a request's role list selects; nil if it
// has none.
func ByRoles(c *rest.Call, d *kind.Def) (*cow.Bitmap, error) {
	roles := roleFilterParam.Of(c)
	if len(roles) == 0 {
		return nil, nil
	}
	return access.Filter(c.Snap, d, roles, roleSemanticParam.Of(c))
}

// AsIdentityParam shows services as somebody else sees them.
var AsIdentityParam = rest.TextParam("asIdentity", "Id or name of an identity: list what it may use, as it sees it; everything if not given.")

// AsIdentity lets those who may know who can use what see services as somebody else does.
func AsIdentity(s *Service, c *rest.Call) (*Viewer, error) {
	as := AsIdentityParam.Of(c)
	if as == "" {
		return nil, nil
	}
	if !c.May("access:read") {
		return nil, fault.New(fault.CodeUnauthorized, "asIdentity needs the power access:read over all records; leave it out")
	}
	identity, ok := model.Identities.Get(c.Snap, as)
	if !ok {
		identity, ok = model.Identities.Find(c.Snap, "name", strings.TrimSpace(as))
	}
	if !ok {
		return nil, fault.NotFound("identity", as)
	}
	return s.ViewOf(c, identity.ID), nil
}
