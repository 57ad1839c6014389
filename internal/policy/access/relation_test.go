package access_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
)

// TestRelations compares the table with the lists of the Management API.
func TestRelations(t *testing.T) {
	want := []string{
		"config-types/configs listConfigsForConfigType",
		"configs/services listConfigServices",
		"edge-router-policies/edge-routers listEdgeRouterPolicyEdgeRouters",
		"edge-router-policies/identities listEdgeRouterPolicyIdentities",
		"edge-routers/edge-router-policies listEdgeRouterEdgeRouterPolicies",
		"edge-routers/identities listEdgeRouterIdentities",
		"edge-routers/service-edge-router-policies listEdgeRouterServiceEdgeRouterPolicies",
		"edge-routers/services listEdgeRouterServices",
		"identities/authenticators getIdentityAuthenticators",
		"identities/edge-router-policies listIdentitysEdgeRouterPolicies",
		"identities/edge-routers listIdentityEdgeRouters",
		"identities/enrollments getIdentityEnrollments",
		"identities/service-configs listIdentitysServiceConfigs",
		"identities/service-policies listIdentityServicePolicies",
		"identities/services listIdentityServices",
		"service-edge-router-policies/edge-routers listServiceEdgeRouterPolicyEdgeRouters",
		"service-edge-router-policies/services listServiceEdgeRouterPolicyServices",
		"service-policies/identities listServicePolicyIdentities",
		"service-policies/posture-checks listServicePolicyPostureChecks",
		"service-policies/services listServicePolicyServices",
		"services/configs listServiceConfig",
		"services/edge-routers listServiceEdgeRouters",
		"services/identities listServiceIdentities",
		"services/service-edge-router-policies listServiceServiceEdgeRouterPolicies",
		"services/service-policies listServiceServicePolicies",
		"services/terminators listServiceTerminators",
	}
	var got []string
	for _, rel := range access.Relations {
		got = append(got, rel.From.Path+"/"+rel.Path+" "+rel.Name)
		if rel.Path != rel.To.Path {
			t.Errorf("%s leads to %s", rel.Name, rel.To.Path)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("relations (-want +got):\n%s", diff)
	}
}

// TestShared checks that bitmaps are not copied where the snapshot has them.
func TestShared(t *testing.T) {
	w := newWorld(t)
	s, err := w.write(func(tx *state.Tx) error {
		for _, id := range ids("s", 3) {
			err := model.Services.Upsert(tx, id, func(s *model.Service) {
				s.Name, s.RoleAttributes = id, []string{"a"}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	snap, d := s.after, model.Services.Def
	tests := []struct {
		roles  []string
		tagged string
	}{
		{[]string{"#all"}, ""},
		{[]string{"#all", "@s0", "#a"}, ""},
		{[]string{"#a"}, "a"},
		{[]string{"#a", "@s0"}, "a"},
	}
	for _, test := range tests {
		for _, semantic := range []string{model.AllOf, model.AnyOf} {
			if got, want := access.Matching(snap, d, test.roles, semantic), snap.Tagged(d, test.tagged); got != want {
				t.Errorf("%s %v is a copy", semantic, test.roles)
			}
		}
	}
}

// TestEmptyAttribute has records that no body can make: an empty attribute is
// nobody's.
func TestEmptyAttribute(t *testing.T) {
	w := newWorld(t)
	ann := &model.Identity{Meta: kind.Meta{ID: "ann"}}
	person("ann", "")(ann)
	w.smuggle(model.Identities.Def, ann)
	_, err := w.write(func(tx *state.Tx) error {
		return model.Services.Upsert(tx, "crm", func(s *model.Service) { s.Name = "crm" })
	})
	if err != nil {
		t.Fatal(err)
	}
	w.smuggle(model.ServicePolicies.Def, &model.ServicePolicy{
		Meta: kind.Meta{ID: "odd"}, Name: "odd", Type: model.Dial, Semantic: model.AnyOf,
		IdentityRoles: []string{"#"}, ServiceRoles: []string{"#all"},
	})
	snap := w.st.Snapshot()
	if access.MayDial(snap, "ann", "crm") {
		t.Error("ann may dial crm")
	}
	odd, _ := snap.Lookup(model.ServicePolicies.Def, "odd")
	if got := access.ServicePolicyIdentities.Members(snap, odd); !got.IsEmpty() {
		t.Errorf("the policy selects %v", got)
	}
}
