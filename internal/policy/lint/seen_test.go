package lint_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/lint"
)

// TestNotSeen looks at a network in which identities were seen in several ways, ten
// days and a hundred after it was begun to note that.
func TestNotSeen(t *testing.T) {
	st := open(t)
	now := time.Now()
	days := func(n int) time.Time { return now.AddDate(0, 0, n) }
	forEver := days(0)
	update(t, st, func(tx *state.Tx) error {
		role, _ := model.AdminRoles.Find(tx, "name", "viewer")
		add := func(name string, change func(*model.Identity)) error {
			i := model.Identities.New()
			i.ID, i.Name, i.Type, i.ExternalID = name, name, "User", name
			change(i)
			return model.Identities.Create(tx, i)
		}
		same := func(*model.Identity) {}
		for _, err := range []error{
			add("away", same), add("never", same), add("there", same), add("session", same), add("owner", same),
			add("disabled", func(i *model.Identity) { i.DisabledAt = &forEver }),
			add("gate", func(i *model.Identity) { i.Type = model.TypeRouter }),
			add("invited", func(i *model.Identity) { i.ExternalID = "" }),
			model.Remember(tx, "away", nil, nil, days(1)),
			model.Remember(tx, "there", nil, nil, days(50)),
			model.APISessions.Create(tx, &model.APISession{Meta: kind.Meta{ID: "s"}, IdentityID: "session", TokenHash: "x", LastActivityAt: kind.MomentOf(days(60))}),
			model.Tokens.Create(tx, &model.Token{Meta: kind.Meta{ID: "ci"}, Name: "ci", RoleID: role.ID, OwnerID: "owner", Digest: "x", ExpiresAt: days(200)}),
			model.TokenUses.Create(tx, &model.TokenUse{Meta: kind.Meta{ID: "ci"}, TokenID: "ci", At: days(40)}),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, at := range []struct {
		day  int
		want string
	}{{10, ""}, {90, ""}, {92, "away never"}, {135, "away never owner"}, {155, "away never owner session there"}} {
		got := found(lint.Run(st.Snapshot(), days(at.day)))["identity-not-seen"]
		want := strings.Fields(at.want)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("on day %d: %v, want %v", at.day, got, want)
		}
	}
	for _, c := range lint.Run(st.Snapshot(), days(92)) {
		for _, f := range c.Listed {
			want := map[string]string{"away": "was last seen on ", "never": "was not seen since "}[f.Name] + days(1).UTC().Format(time.DateOnly)
			if c.Name == "identity-not-seen" && (f.What != want || f.Command != "netkeep disable identity "+f.Name) {
				t.Errorf("%s %s: %s", f.Name, f.What, f.Command)
			}
		}
	}
}

// TestNobodyNoted has a network of before it was noted who was seen: nobody is missed.
func TestNobodyNoted(t *testing.T) {
	st := open(t)
	update(t, st, func(tx *state.Tx) error {
		return model.Identities.Create(tx, &model.Identity{Meta: kind.Meta{ID: "ann"}, Name: "ann", Type: "User", ExternalID: "ann"})
	})
	if got := found(lint.Run(st.Snapshot(), time.Now().AddDate(1, 0, 0)))["identity-not-seen"]; len(got) > 0 {
		t.Errorf("%v", got)
	}
}

// TestEndingGrants tells of those that end soon, unless they were given for a short time.
func TestEndingGrants(t *testing.T) {
	st := open(t)
	now := time.Now()
	update(t, st, func(tx *state.Tx) error {
		if err := model.Identities.Create(tx, &model.Identity{Meta: kind.Meta{ID: "ann"}, Name: "ann", Type: "User"}); err != nil {
			return err
		}
		for name, days := range map[string]int{"long": 30, "longer": 60, "short": 13} {
			g := &model.Grant{Name: name, IdentityID: "ann", Attribute: name, Reason: "test", ValidUntil: now.AddDate(0, 0, days)}
			if err := model.Grants.Create(tx, g); err != nil {
				return err
			}
		}
		return nil
	})
	for day, want := range map[int]string{0: "", 12: "", 17: "long", 47: "longer", 61: ""} {
		got := found(lint.Run(st.Snapshot(), now.AddDate(0, 0, day)))["grant-ending"]
		if strings.Join(got, " ") != want {
			t.Errorf("on day %d: %v, want %s", day, got, want)
		}
	}
}

// TestOverlap says who has what twice, and which role can go where one can.
func TestOverlap(t *testing.T) {
	st := open(t)
	update(t, st, func(tx *state.Tx) error {
		for _, i := range [][2]string{{"ann", "staff a"}, {"bob", "staff a b"}, {"cia", "staff b"}, {"dan", "staff"}} {
			if err := model.Identities.Create(tx, &model.Identity{Meta: kind.Meta{ID: i[0]}, Name: i[0], Type: "User", RoleAttributes: strings.Fields(i[1])}); err != nil {
				return err
			}
		}
		for _, name := range []string{"mail", "shop", "wiki", "note", "list", "one", "book"} {
			if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, EncryptionRequired: true}); err != nil {
				return err
			}
		}
		for _, p := range [][3]string{
			{"1", "#staff", "@mail @wiki"},
			{"2", "@ann @bob", "@wiki @shop"},      // of wiki the first has it all
			{"3", "@ann @cia @dan", "@mail @shop"}, // half of it is the first one's: mail
			{"4", "@ann", "@note @list"},           // of note the next has it all
			{"5", "#staff", "@note"},
			{"6", "@ann @dan", "@one"}, // half of those whom the next has too
			{"7", "@ann @bob", "@one"},
			{"8", "#a", "@book"}, // no role of either can go
			{"9", "#b", "@book"},
		} {
			q := &model.ServicePolicy{Meta: kind.Meta{ID: p[0]}, Name: "p" + p[0], Type: model.Dial, Semantic: model.AnyOf, IdentityRoles: strings.Fields(p[1]), ServiceRoles: strings.Fields(p[2])}
			if err := model.ServicePolicies.Create(tx, q); err != nil {
				return err
			}
		}
		return nil
	})
	want := []string{
		"p2 gives all of its identities (ann, bob) 1 of its 2 services (wiki), which p1 gives them as well: netkeep update service-policy p2 --remove-service-role '@wiki'",
		"p3 gives all of its identities (ann, cia, dan) 1 of its 2 services (mail), which p1 gives them as well: netkeep update service-policy p3 --remove-service-role '@mail'",
		"p4 gives all of its identities (ann) 1 of its 2 services (note), which p5 gives them as well: netkeep update service-policy p4 --remove-service-role '@note'",
		"p7 gives 1 of its 2 identities (ann) all of its services (one), which p6 gives them as well: netkeep update service-policy p7 --remove-identity-role '@ann'",
		"p9 gives 1 of its 2 identities (bob) all of its services (book), which p8 gives them as well: netkeep who-can dial book",
	}
	var got []string
	for _, c := range lint.Run(st.Snapshot(), time.Now()) {
		if c.Name == "policy-overlapping" {
			for _, f := range c.Listed {
				got = append(got, f.Name+" "+f.What+": "+f.Command)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
