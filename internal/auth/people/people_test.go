package people

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/internal/auth/token"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

type claims map[string]any

// said is what a token says that is good.
func said(t interface{ Fatal(...any) }, c claims) token.Claims {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	maker, err := token.NewMaker(key, "k")
	if err != nil {
		t.Fatal(err)
	}
	all := claims{"iss": "i", "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, c)
	text, err := maker.Make(all)
	if err != nil {
		t.Fatal(err)
	}
	read, err := token.Check(text, time.Now, func(string, string) crypto.PublicKey { return key.Public() })
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestGroups reads groups in all the forms in which providers have them.
func TestGroups(t *testing.T) {
	for name, test := range map[string]struct {
		selector string
		allow    []string
		groups   any
		want     []string
		left     int
	}{
		"list":              {"g", nil, []any{"b", "a", "b"}, []string{"p:a", "p:b"}, 0},
		"one":               {"g", nil, "a", []string{"p:a"}, 0},
		"names":             {"g", nil, claims{"a": claims{"x": "y"}, "b": nil}, []string{"p:a", "p:b"}, 0},
		"nested":            {"/g/x~1y/0", nil, claims{"x/y": []any{"a"}}, []string{"p:a"}, 0},
		"past the end":      {"/g/1", nil, []any{"a"}, nil, 0},
		"an odd number":     {"/g/00", nil, []any{"a"}, nil, 0},
		"in a text":         {"/g/a", nil, "a", nil, 0},
		"no texts":          {"g", nil, []any{1, nil, true, []any{"a"}, claims{"a": "b"}}, nil, 0},
		"a number":          {"g", nil, 7, nil, 0},
		"allowed":           {"g", []string{"eng-*", "*/ops", "a*b*c"}, []any{"eng-1", "eng", "/x/ops", "abc", "acb", "aXbYc", "ac"}, []string{"p:/x/ops", "p:aXbYc", "p:abc", "p:eng-1"}, 3},
		"case":              {"g", []string{"Eng"}, []any{"eng", "ENG", "Eng"}, []string{"p:Eng"}, 2},
		"invisible":         {"g", nil, []any{"a\u200b", "\u202ea", "a ", "a\nb", ""}, nil, 5},
		"long":              {"g", nil, []any{strings.Repeat("é", 64)}, nil, 1},
		"just not too long": {"g", nil, []any{strings.Repeat("é", 63)}, []string{"p:" + strings.Repeat("é", 63)}, 0},
	} {
		signer := &model.ExtJWTSigner{EnrollAttributeClaimsSelector: test.selector, EnrollAttributePrefix: "p:", EnrollAttributeAllow: test.allow}
		p := Read(signer, said(t, claims{"sub": "s", "g": test.groups}))
		if diff := cmp.Diff(test.want, p.Attributes); diff != "" || len(p.Left) != test.left {
			t.Errorf("%s: left %v (-want +got):\n%s", name, p.Left, diff)
		}
	}
}

// TestGroupsWithoutPrefix has groups that would be roles of everybody.
func TestGroupsWithoutPrefix(t *testing.T) {
	signer := &model.ExtJWTSigner{EnrollAttributeClaimsSelector: "g", EnrollAttributeAllow: []string{"*"}}
	p := Read(signer, said(t, claims{"sub": "s", "g": []any{"all", "#all", "@id", "#x", "good"}}))
	if !slices.Equal(p.Attributes, []string{"good"}) || len(p.Left) != 4 {
		t.Errorf("%v, left %v", p.Attributes, p.Left)
	}
	signer.EnrollAttributeAllow = nil
	if p = Read(signer, said(t, claims{"sub": "s", "g": []any{"good"}})); len(p.Attributes) > 0 || len(p.Left) != 1 {
		t.Errorf("without prefix and list: %v, left %v", p.Attributes, p.Left)
	}
}

func TestMatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.StringMatching(`[ab]{0,2}`), 1, 4).Draw(rt, "parts")
		fill := rapid.SliceOfN(rapid.StringMatching(`[ab]{0,3}`), len(parts), len(parts)).Draw(rt, "fill")
		text := parts[0]
		for i, p := range parts[1:] {
			text += fill[i] + p
		}
		if pattern := strings.Join(parts, "*"); !match(pattern, text) {
			rt.Fatalf("%q does not match %q", pattern, text)
		}
	})
	for pattern, text := range map[string]string{"a*": "b", "*a": "ab", "a*a": "a", "ab*ba": "aba", "a": "ab", "": "a", "*b*": "aa"} {
		if match(pattern, text) {
			t.Errorf("%q matches %q", pattern, text)
		}
	}
}

// network is a controller of one.
type network struct {
	*Register
	*state.State
}

var program = state.Program("test")

func open(t testing.TB, memory store.Store, now func() time.Time) network {
	t.Helper()
	st, err := state.Open(t.Context(), memory, model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return network{NewRegister(st, now), st}
}

func (n network) update(t interface{ Fatal(...any) }, fn func(tx *state.Tx) error) {
	if err := n.State.Update(context.Background(), program, fn); err != nil {
		t.Fatal(err)
	}
}

// found makes a network with some signers that let people in.
func found(t testing.TB, n network, signers int) (all []*model.ExtJWTSigner) {
	t.Helper()
	n.update(t, func(tx *state.Tx) error {
		all = nil
		if err := model.Seed(tx); err != nil {
			return err
		}
		for i := range signers {
			s := model.ExtJWTSigners.New()
			s.ID, s.Name, s.Enabled = tx.NewID(), fmt.Sprintf("s%d", i), true
			s.Issuer, s.Audience, s.JWKSEndpoint = fmt.Sprintf("https://%d", i), "a", "https://keys.example"
			s.UseExternalID, s.EnrollToTokenEnabled, s.EnrollToCertEnabled = true, true, true
			s.EnrollClaims = map[string]string{"ok": "yes"}
			s.EnrollAttributeClaimsSelector, s.EnrollAttributeAllow = "g", []string{"*"}
			if err := model.ExtJWTSigners.Create(tx, s); err != nil {
				return err
			}
			all = append(all, s)
		}
		return nil
	})
	return all
}

// TestRateOfPeople has more people come at once than may.
func TestRateOfPeople(t *testing.T) {
	now := time.Now()
	memory := storetest.NewMemory()
	n := open(t, memory, func() time.Time { return now })
	signer := found(t, n, 1)[0]
	come := func(i int) error {
		sub := fmt.Sprintf("sub%d", i)
		_, err := n.Appear(t.Context(), program, Wish{Signer: signer, Person: Person{ExternalID: sub, Name: sub}, ID: state.NewID()})
		return err
	}
	for i := range perMinute {
		if err := come(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := come(perMinute); !fault.Is(err, fault.CodeRateLimited) {
		t.Errorf("one too many: %v", err)
	}
	if err := come(0); err != nil {
		t.Errorf("one who is there already: %v", err)
	}
	now = now.Add(time.Minute)
	if err := come(perMinute); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	// And never more than the signer says.
	n.update(t, func(tx *state.Tx) error {
		return model.ExtJWTSigners.Edit(tx, signer.ID, func(s *model.ExtJWTSigner) error {
			s.EnrollLimit = perMinute + 1
			return nil
		})
	})
	var refused Refusal
	if err := come(perMinute + 1); !errors.As(err, &refused) || !strings.Contains(string(refused), "enrollLimit") {
		t.Errorf("past the limit: %v", err)
	}
}

// TestPersonAtTwoControllers has one person come at two controllers at once.
func TestPersonAtTwoControllers(t *testing.T) {
	memory := storetest.NewMemory()
	one, other := open(t, memory, time.Now), open(t, memory, time.Now)
	signer := found(t, one, 1)[0]
	if _, err := other.State.Current(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		sub := fmt.Sprintf("sub%d", round)
		var both sync.WaitGroup
		var ids [2]string
		for i, n := range []network{one, other} {
			both.Go(func() {
				who, err := n.Appear(t.Context(), program, Wish{Signer: signer, Person: Person{ExternalID: sub, Name: sub}, ID: state.NewID()})
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = who.ID
			})
		}
		both.Wait()
		if ids[0] != ids[1] {
			t.Errorf("%s is %v", sub, ids)
		}
	}
}

// TestAttributesFollow has people log in by several signers and admins edit what
// they have, beside a model that keeps apart what is whose.
func TestAttributesFollow(t *testing.T) {
	words := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	rapid.Check(t, func(rt *rapid.T) {
		memory := storetest.NewMemory()
		n := open(t, memory, time.Now)
		signers := found(t, n, 2)
		own, by := map[string]bool{}, map[string]map[string]bool{}
		since := map[string]int64{} // when the newest token was made
		var id string
		n.update(rt, func(tx *state.Tx) error {
			i := model.Identities.New()
			i.Name, i.Type = "ann", "User"
			err := model.Identities.Create(tx, i)
			id = i.ID
			return err
		})
		provided := func(w string) bool {
			return slices.ContainsFunc(slices.Collect(maps.Values(by)), func(s map[string]bool) bool { return s[w] })
		}
		rt.Repeat(map[string]func(*rapid.T){
			"login": func(rt *rapid.T) {
				s := rapid.SampledFrom(signers).Draw(rt, "signer")
				groups := rapid.SliceOfN(words, 0, 4).Draw(rt, "groups")
				list := []any{}
				for _, g := range groups {
					list = append(list, g)
				}
				if _, there := model.ExtJWTSigners.Get(n.State.Snapshot(), s.ID); !there {
					return
				}
				at := rapid.Int64Range(1_000_000, 1_000_009).Draw(rt, "issued")
				if err := n.Follow(context.Background(), program, s, id, Read(s, said(rt, claims{"sub": "s", "g": list, "iat": at}))); err != nil {
					rt.Fatal(err)
				}
				next := map[string]bool{}
				for _, g := range groups {
					if !own[g] {
						next[g] = true
					}
				}
				if at >= since[s.ID] {
					by[s.ID], since[s.ID] = next, at
				}
			},
			"edit": func(rt *rapid.T) {
				list := rapid.SliceOfN(words, 0, 5).Draw(rt, "attributes")
				slices.Sort(list)
				list = slices.Compact(list)
				n.update(rt, func(tx *state.Tx) error {
					return model.Identities.Edit(tx, id, func(i *model.Identity) error {
						i.RoleAttributes = list
						return nil
					})
				})
				own = map[string]bool{}
				for _, w := range list {
					own[w] = !provided(w)
				}
			},
			"rename": func(rt *rapid.T) {
				n.update(rt, func(tx *state.Tx) error {
					return model.Identities.Edit(tx, id, func(i *model.Identity) error {
						i.Name += "x"
						return nil
					})
				})
			},
			"signer goes": func(rt *rapid.T) {
				s := rapid.SampledFrom(signers).Draw(rt, "signer")
				if err := n.State.Delete(context.Background(), program, model.ExtJWTSigners.Def, s.ID); err != nil && !fault.Is(err, fault.CodeNotFound) {
					rt.Fatal(err)
				}
				delete(by, s.ID)
				delete(since, s.ID)
			},
			"": func(rt *rapid.T) {
				i, _ := model.Identities.Get(n.State.Snapshot(), id)
				for _, w := range []string{"a", "b", "c", "d", "e"} {
					if got, want := slices.Contains(i.RoleAttributes, w), own[w] || provided(w); got != want {
						rt.Fatalf("%s: %v, want %v; %v, %v", w, got, want, i.RoleAttributes, i.ProviderAttributes)
					}
					if got := slices.Contains(i.Own(), w); got != own[w] {
						rt.Fatalf("%s is the identity's own: %v, want %v", w, got, own[w])
					}
					for _, s := range signers {
						if got := slices.Contains(i.ProvidedBy(w), s.ID); got != by[s.ID][w] {
							rt.Fatalf("%s is of %s: %v", w, s.Name, got)
						}
					}
				}
			},
		})
	})
}
