package takeover

import (
	"strings"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/takeover/zitidb"
)

func (r *reading) readPostureChecks() error {
	return each(r, zitidb.PostureChecks, func(p *zitidb.PostureCheck) {
		rec := model.PostureChecks.New()
		rec.Meta, rec.Name, rec.TypeID, rec.RoleAttributes = r.meta("posture-checks", p.Common), p.Name, p.TypeID, list(p.RoleAttributes)
		switch {
		case p.MAC != nil:
			rec.MACAddresses = list(p.MAC.Addresses)
		case p.Domain != nil:
			rec.Domains = list(p.Domain.Domains)
		case p.OS != nil:
			for _, os := range values(p.OS) {
				rec.OperatingSystems = append(rec.OperatingSystems, model.OperatingSystem{Type: os.Type, Versions: list(os.Versions)})
			}
		case p.Process != nil:
			rec.Process = &model.Process{OSType: p.Process.OS, Path: p.Process.Path, Hashes: list(p.Process.Hashes), SignerFingerprint: p.Process.Fingerprint}
		case p.ProcessMulti != nil:
			rec.Semantic = p.ProcessMulti.Semantic
			for _, process := range values(p.ProcessMulti.Processes) {
				rec.Processes = append(rec.Processes, model.ProcessMulti{OSType: process.OSType, Path: process.Path, Hashes: list(process.Hashes), SignerFingerprints: list(process.SignerFingerprints)})
			}
		case p.MFA != nil:
			rec.TimeoutSeconds, rec.PromptOnWake, rec.PromptOnUnlock = int(p.MFA.TimeoutSeconds), p.MFA.PromptOnWake, p.MFA.PromptOnUnlock
			rec.IgnoreLegacyEndpoints = p.MFA.IgnoreLegacyEndpoints
		}
		r.checks[p.ID] = true
		add(r, model.PostureChecks, rec, p.Name)
	})
}

// roles is a role list without ids of what is not there. Ids stand beside attributes, so
// that fewer of them never give more.
func (r *reading) roles(at string, list []string, there func(id string) bool) []string {
	return said(filtered(list, func(role string) bool {
		id, is := strings.CutPrefix(role, "@")
		return !is || there(id)
	}, func(role string) { r.note(Dangling, at+" "+role) }))
}

func (r *reading) hasIdentity(id string) bool { return r.identities[id] != nil }
func (r *reading) isService(id string) bool   { return r.services[id] }
func (r *reading) isEdge(id string) bool      { _, is := r.edges[id]; return is }
func (r *reading) isCheck(id string) bool     { return r.checks[id] }

func (r *reading) readPolicies() error {
	err := each(r, zitidb.ServicePolicies, func(p *zitidb.ServicePolicy) {
		at := "service-policies/" + p.ID + " " + p.Name
		rec := model.ServicePolicies.New()
		rec.Meta, rec.Name, rec.Semantic, rec.Type = r.meta("service-policies", p.Common), p.Name, p.Semantic, model.Dial
		if p.Type == zitidb.Bind {
			rec.Type = model.Bind
		}
		rec.IdentityRoles, rec.ServiceRoles = r.roles(at, p.IdentityRoles, r.hasIdentity), r.roles(at, p.ServiceRoles, r.isService)
		rec.PostureCheckRoles = r.roles(at, p.PostureCheckRoles, r.isCheck)
		add(r, model.ServicePolicies, rec, p.Name)
	})
	if err != nil {
		return err
	}
	err = each(r, zitidb.EdgeRouterPolicies, func(p *zitidb.EdgeRouterPolicy) {
		at := "edge-router-policies/" + p.ID + " " + p.Name
		rec := model.EdgeRouterPolicies.New()
		rec.Meta, rec.Name, rec.Semantic = r.meta("edge-router-policies", p.Common), p.Name, p.Semantic
		rec.IdentityRoles, rec.EdgeRouterRoles = r.roles(at, p.IdentityRoles, r.hasIdentity), r.roles(at, p.EdgeRouterRoles, r.isEdge)
		add(r, model.EdgeRouterPolicies, rec, p.Name)
	})
	if err != nil {
		return err
	}
	return each(r, zitidb.ServiceEdgeRouterPolicies, func(p *zitidb.ServiceEdgeRouterPolicy) {
		at := "service-edge-router-policies/" + p.ID + " " + p.Name
		rec := model.ServiceEdgeRouterPolicies.New()
		rec.Meta, rec.Name, rec.Semantic = r.meta("service-edge-router-policies", p.Common), p.Name, p.Semantic
		rec.ServiceRoles, rec.EdgeRouterRoles = r.roles(at, p.ServiceRoles, r.isService), r.roles(at, p.EdgeRouterRoles, r.isEdge)
		add(r, model.ServiceEdgeRouterPolicies, rec, p.Name)
	})
}
