package access_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/state/cow"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// TestScripts runs testdata/*.txt. A script describes a small world, asks
// questions and says what the answers are. Records are called by their ids. A
// record that is described again changes. The lines of a script are
//
//	# a comment
//	identity ann sales eu                     with its role attributes
//	admin ann sales eu                        the same, of an admin
//	service crm internal + address            after the plus, its configs
//	edge-router paris eu
//	posture-check antivirus strict
//	config-type intercept [name]
//	config address intercept [version of its data]
//	override ann crm address                  ann gets this config with crm
//	service-policy p Dial AnyOf #sales @ann : #internal : #strict
//	edge-router-policy p AllOf #eu : @paris
//	service-edge-router-policy p AllOf #all : #eu
//	delete service crm
//	again identity ann sales                  delete and create, in one batch
//
//	affected ann bob                          whom the line above affects
//	list identities/ann/services = crm        a list of the Management API
//	dial ann crm = yes                        and bind; yes or no
//	routers ann crm = paris                   that both may use
//	granting ann crm Dial = p
//	matching services AnyOf #internal = crm   a role list
//	filter services anyof #internal = crm     a role filter; - for no semantic
//	advice ann crm paris = words, words       what is missing if paris is online
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := script{T: t, world: newWorld(t)}
			for i, line := range strings.Split(string(data), "\n") {
				s.where = fmt.Sprintf("%s:%d", file, i+1)
				if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
					s.line(line)
				}
			}
			if s.checks == 0 {
				t.Error("the script checks nothing")
			}
		})
	}
}

// script is a script that runs.
type script struct {
	*testing.T
	world  *world
	where  string
	last   step
	checks int
}

func (s *script) line(line string) {
	question, want, asks := strings.Cut(line, "=")
	words := strings.Fields(question)
	switch {
	case asks:
		s.expect(strings.TrimSpace(want), s.answer(words[0], words[1:]))
	case words[0] == "affected":
		set := access.Affected(s.last.before, s.last.after, s.last.changed)
		s.expect(strings.Join(words[1:], " "), s.names(model.Identities.Def, set))
	default:
		var err error
		if s.last, err = s.world.write(func(tx *state.Tx) error { return s.write(tx, words) }); err != nil {
			s.Fatalf("%s: %v", s.where, err)
		}
	}
}

// expect compares two lists of words, in any order.
func (s *script) expect(want, got string) {
	s.checks++
	sorted := func(text string) string { return strings.Join(slices.Sorted(slices.Values(strings.Fields(text))), " ") }
	if sorted(want) != sorted(got) {
		s.Errorf("%s: got %q, want %q", s.where, got, want)
	}
}

func (s *script) names(d *kind.Def, set *cow.Bitmap) string {
	return strings.Join(names(s.world.st.Snapshot(), d, set), " ")
}

// write does what a line of the description says.
func (s *script) write(tx *state.Tx, words []string) error {
	id, rest := words[1], words[2:]
	switch words[0] {
	case "delete":
		return tx.Delete(model.All.Named(id), rest[0])
	case "again":
		if err := tx.Delete(model.All.Named(id), rest[0]); err != nil {
			return err
		}
		return s.write(tx, words[1:])
	case "identity", "admin":
		return model.Identities.Upsert(tx, id, func(i *model.Identity) {
			i.Name, i.Type = id, "User"
			i.RoleAttributes, i.IsAdmin = rest, words[0] == "admin"
		})
	case "service":
		attributes, configs := cut(rest, "+")
		return model.Services.Upsert(tx, id, func(v *model.Service) {
			v.Name, v.RoleAttributes, v.Configs = id, attributes, configs
		})
	case "edge-router":
		return model.EdgeRouters.Upsert(tx, id, func(r *model.EdgeRouter) { r.Name, r.RoleAttributes = id, rest })
	case "posture-check":
		return model.PostureChecks.Upsert(tx, id, func(k *model.PostureCheck) { k.Name, k.TypeID, k.RoleAttributes = id, "MFA", rest })
	case "config-type":
		return model.ConfigTypes.Upsert(tx, id, func(c *model.ConfigType) { c.Name = strings.Join(append(rest, id)[:1], "") })
	case "config":
		return model.Configs.Upsert(tx, id, func(c *model.Config) {
			c.Name, c.ConfigTypeID, c.Data = id, rest[0], jsontext.Value(`{"version":"`+strings.Join(rest[1:], "")+`"}`)
		})
	case "override":
		c, _ := model.Configs.Get(tx, rest[1])
		return model.ServiceConfigs.Upsert(tx, model.ServiceConfigID(id, rest[0], c.ConfigTypeID), func(o *model.ServiceConfig) {
			o.IdentityID, o.ServiceID, o.ConfigID, o.ConfigTypeID = id, rest[0], rest[1], c.ConfigTypeID
		})
	}
	return s.writePolicy(tx, words[0], id, rest)
}

func (s *script) writePolicy(tx *state.Tx, what, id string, words []string) error {
	switch what {
	case "service-policy":
		identities, rest := cut(words[2:], ":")
		services, checks := cut(rest, ":")
		return model.ServicePolicies.Upsert(tx, id, func(p *model.ServicePolicy) {
			p.Name, p.Type, p.Semantic = id, words[0], words[1]
			p.IdentityRoles, p.ServiceRoles, p.PostureCheckRoles = identities, services, checks
		})
	case "edge-router-policy":
		return model.EdgeRouterPolicies.Upsert(tx, id, func(p *model.EdgeRouterPolicy) {
			p.Name, p.Semantic = id, words[0]
			p.IdentityRoles, p.EdgeRouterRoles = cut(words[1:], ":")
		})
	case "service-edge-router-policy":
		return model.ServiceEdgeRouterPolicies.Upsert(tx, id, func(p *model.ServiceEdgeRouterPolicy) {
			p.Name, p.Semantic = id, words[0]
			p.ServiceRoles, p.EdgeRouterRoles = cut(words[1:], ":")
		})
	}
	return fmt.Errorf("there is no %q", what)
}

// cut splits a list at the first mark.
func cut(list []string, mark string) (before, after []string) {
	if i := slices.Index(list, mark); i >= 0 {
		return list[:i:i], list[i+1:]
	}
	return list, nil
}

// answer answers a question.
func (s *script) answer(question string, words []string) string {
	snap := s.world.st.Snapshot()
	switch question {
	case "list":
		return s.list(snap, words[0])
	case "dial":
		return yes(access.MayDial(snap, words[0], words[1]))
	case "bind":
		return yes(access.MayBind(snap, words[0], words[1]))
	case "routers":
		return s.names(model.EdgeRouters.Def, access.CommonRouters(snap, words[0], words[1]))
	case "granting":
		return strings.Join(policyIDs(access.Granting(snap, words[0], words[1], words[2])), " ")
	case "matching":
		d := collection(words[0])
		return s.names(d, access.Matching(snap, d, words[2:], words[1]))
	case "filter":
		d := collection(words[0])
		set, err := access.Filter(snap, d, words[2:], strings.Trim(words[1], "-"))
		if err != nil {
			return err.Error()
		}
		return s.names(d, set)
	case "advice":
		a, err := access.Advise(snap, words[0], words[1], func(id string) bool { return slices.Contains(words[2:], id) })
		if err != nil {
			return string(fault.CodeOf(err))
		}
		return strings.Join(a.Missing, ", ")
	}
	s.Fatalf("%s: nobody can answer %q", s.where, question)
	return ""
}

func (s *script) list(snap *state.Snapshot, path string) string {
	part := strings.Split(path, "/")
	for _, rel := range access.Relations {
		if rel.From.Path != part[0] || rel.Path != part[2] {
			continue
		}
		var found []string
		for rec := range rel.Find(snap, part[1]).Records() {
			found = append(found, rec.Base().ID)
		}
		return strings.Join(found, " ")
	}
	s.Fatalf("%s: there is no list %q", s.where, path)
	return ""
}

func collection(path string) *kind.Def {
	return model.All.Defs[slices.IndexFunc(model.All.Defs, func(d *kind.Def) bool { return d.Path == path })]
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
