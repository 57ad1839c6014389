package manifest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/test/servertest"
)

// world draws a random network, as a list of creates.
type world struct {
	*rapid.T
	raw   []M
	names map[string][]string // by kind
	cas   []string            // certificates
}

// odd are names that files have to write with care.
var odd = []string{"a", "über", "x y", "#hash", "@at", "yes", "1", "- dash", "a: b", `"q"`, "null", "tab\there", "~", "a,b", "[x]", "0x1f", "1e3", " lead", "end ", "😀", "back\\slash", "a\nb"}

// name draws one that no other record of the kind has.
func (w *world) name(kind string) string {
	name := rapid.SampledFrom(odd).Filter(func(s string) bool { return !slices.Contains(w.names[kind], s) }).Draw(w.T, kind)
	w.names[kind] = append(w.names[kind], name)
	return name
}

func (w *world) add(kind string, body M) {
	w.raw = append(w.raw, M{"op": "create", "kind": kind, "body": body})
}

// maybe puts a member into a body, or not.
func (w *world) maybe(body M, name string, draw func() any) {
	if rapid.Bool().Draw(w.T, name+"?") {
		body[name] = draw()
	}
}

func (w *world) bool(what string) bool { return rapid.Bool().Draw(w.T, what) }
func (w *world) int(low, high int) int { return rapid.IntRange(low, high).Draw(w.T, "int") }

func (w *world) one(of ...string) string { return rapid.SampledFrom(of).Draw(w.T, "one") }

func (w *world) some(of []string, most int) []any {
	list := []any{}
	if len(of) == 0 {
		return list
	}
	for _, s := range rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, min(most, len(of)), rapid.ID[string]).Draw(w.T, "some") {
		list = append(list, s)
	}
	return list
}

var words = []string{"office", "staff", "x-1", "Grün", "true", "07"}

func (w *world) attributes() any { return w.some(words, 3) }

// said is what a body may say of a list that is answered as it was said.
func (w *world) said() any {
	if w.bool("null") {
		return nil
	}
	return w.attributes()
}

func (w *world) tags() any {
	return rapid.MapOfN(rapid.SampledFrom([]string{"team", "x y", "1", "on"}), rapid.SampledFrom([]any{"web", "", "no", true, false, nil}), 0, 2).Draw(w.T, "tags")
}

// object draws a free object.
func (w *world) object() any {
	return rapid.MapOfN(rapid.SampledFrom(odd), rapid.SampledFrom([]any{
		"text", "line\nline\n", 1, 2.5, -7, true, nil, []any{}, M{}, []any{1, "two", []any{M{"deep": M{"er": []any{}}}}}, M{"b": 1, "a": M{"c": "d"}},
	}), 0, 3).Draw(w.T, "object")
}

func (w *world) roles(kind string) any {
	if w.int(0, 4) == 0 {
		return []any{"#all"}
	}
	var all []string
	for _, word := range words {
		all = append(all, "#"+word)
	}
	for _, name := range w.names[kind] {
		all = append(all, "@"+name)
	}
	return w.some(all, 4)
}

// several draws some records of a kind.
func (w *world) several(kind string, most int, draw func(body M)) {
	for range w.int(0, most) {
		body := M{"name": w.name(kind)}
		w.maybe(body, "tags", w.tags)
		draw(body)
		w.add(kind, body)
	}
}

func (w *world) build() {
	w.several("ext-jwt-signer", 2, func(b M) {
		b["issuer"], b["enabled"], b["audience"] = fmt.Sprintf("https://%x.example", b["name"]), w.bool("enabled"), "us"
		b["jwksEndpoint"] = "https://keys.example/" + w.one("a", "b")
		w.maybe(b, "claimsProperty", func() any { return w.one("email", "sub", "") })
		w.maybe(b, "useExternalId", func() any { return w.bool("external") })
		w.maybe(b, "enrollClaims", func() any { return M{"/org/id": w.one("a", "b")} })
		w.maybe(b, "enrollAttributeAllow", func() any { return []any{w.one("eng-*", "*")} })
		w.maybe(b, "enrollAuthPolicyId", func() any { return w.one("default", "Default") })
		w.maybe(b, "enrollLimit", func() any { return w.int(0, 5) })
		if b["useExternalId"] == true && b["enrollClaims"] != nil {
			w.maybe(b, "enrollToTokenEnabled", func() any { return w.bool("token") })
		}
	})
	w.several("ca", len(w.cas), func(b M) {
		b["certPem"] = w.cas[len(w.names["ca"])-1]
		b["isAuthEnabled"], b["isAutoCaEnrollmentEnabled"], b["isOttCaEnrollmentEnabled"] = w.bool("a"), w.bool("b"), w.bool("c")
		b["identityRoles"] = w.attributes()
		w.maybe(b, "externalIdClaim", func() any {
			return M{"location": "COMMON_NAME", "matcher": "ALL", "matcherCriteria": nil, "parser": "NONE", "parserCriteria": nil, "index": w.int(0, 2)}
		})
	})
	w.several("auth-policy", 2, w.authPolicy)
	w.several("config-type", 2, func(b M) {
		w.maybe(b, "schema", func() any { return M{"type": "object", "description": w.one("", "x: y", "two\nlines")} })
	})
	types := append([]string{}, w.names["config-type"]...)
	typeOf := map[string]string{}
	if len(types) > 0 {
		w.several("config", 4, func(b M) {
			typeOf[b["name"].(string)] = w.one(types...)
			b["configTypeId"], b["data"] = typeOf[b["name"].(string)], w.object()
		})
	}
	w.several("service", 4, func(b M) {
		b["encryptionRequired"] = w.bool("encrypted")
		w.maybe(b, "terminatorStrategy", func() any { return w.one("weighted", "sticky", "smartrouting", "") })
		w.maybe(b, "roleAttributes", w.said)
		var configs []any
		used := map[string]bool{}
		for _, c := range w.some(w.names["config"], 2) {
			if t := typeOf[c.(string)]; !used[t] {
				used[t], configs = true, append(configs, c)
			}
		}
		if b["configs"] = append([]any{}, configs...); len(configs) == 0 && w.bool("null") {
			b["configs"] = nil
		}
	})
	w.several("edge-router", 2, func(b M) {
		w.maybe(b, "cost", func() any { return w.int(0, 9) })
		w.maybe(b, "isTunnelerEnabled", func() any { return w.bool("tunneler") })
		w.maybe(b, "roleAttributes", w.said)
		w.maybe(b, "allowedNames", func() any { return w.some([]string{"*.example.org", "Edge.Example.org"}, 2) })
		w.maybe(b, "appData", w.object)
	})
	// The names of routers are those of all routers, and of their identities.
	w.names["router"] = slices.Clone(w.names["edge-router"])
	w.several("router", 2, func(b M) { w.maybe(b, "noTraversal", func() any { return w.bool("no") }) })
	w.names["identity"] = slices.Clone(w.names["edge-router"])
	w.several("identity", 5, w.identity)
	w.names["identity"] = w.names["identity"][len(w.names["edge-router"]):]
	w.several("posture-check", 4, w.check)
	w.policies()
	taken := map[[2]string]bool{}
	for range w.int(0, 3) {
		if len(w.names["identity"])*len(w.names["service"])*len(w.names["config"]) == 0 {
			break
		}
		who, what, config := w.one(w.names["identity"]...), w.one(w.names["service"]...), w.one(w.names["config"]...)
		if key := [2]string{who, what}; !taken[key] {
			taken[key] = true
			w.add("service-config", M{"identityId": who, "serviceId": what, "configId": config})
		}
	}
}

func (w *world) authPolicy(b M) {
	b["primary"] = M{
		"cert": M{"allowed": w.bool("cert"), "allowExpiredCerts": w.bool("expired")},
		"updb": M{"allowed": w.bool("updb"), "minPasswordLength": w.int(3, 9), "requireSpecialChar": w.bool("special"), "requireNumberChar": false,
			"requireMixedCase": false, "maxAttempts": w.int(0, 3), "lockoutDurationMinutes": 0},
		"extJwt": M{"allowed": w.bool("jwt"), "allowedSigners": w.some(w.names["ext-jwt-signer"], 2)},
	}
	second := M{"requireTotp": w.bool("totp")}
	if len(w.names["ext-jwt-signer"]) > 0 && w.bool("signer") {
		second["requireExtJwtSigner"] = w.one(w.names["ext-jwt-signer"]...)
	}
	b["secondary"] = second
}

func (w *world) identity(b M) {
	b["type"], b["isAdmin"] = w.one("User", "Device", "Service", "Default"), w.bool("admin")
	w.maybe(b, "roleAttributes", w.said)
	w.maybe(b, "appData", w.object)
	w.maybe(b, "externalId", func() any { return fmt.Sprintf("x%x", b["name"]) })
	w.maybe(b, "externalIdIssuers", func() any {
		both := slices.DeleteFunc(slices.Concat(w.names["ca"], w.names["ext-jwt-signer"]), func(s string) bool {
			return slices.Contains(w.names["ca"], s) && slices.Contains(w.names["ext-jwt-signer"], s)
		})
		return w.some(both, 2)
	})
	w.maybe(b, "authPolicyId", func() any { return w.one(append([]string{"default", "Default"}, w.names["auth-policy"]...)...) })
	w.maybe(b, "defaultHostingCost", func() any { return w.int(0, 5) })
	w.maybe(b, "defaultHostingPrecedence", func() any { return w.one("default", "required", "failed") })
	w.maybe(b, "serviceHostingCosts", func() any {
		costs := M{}
		for _, s := range w.some(w.names["service"], 2) {
			costs[s.(string)] = w.int(0, 9)
		}
		return costs
	})
}

func (w *world) check(b M) {
	w.maybe(b, "roleAttributes", w.said)
	switch b["typeId"] = w.one("DOMAIN", "MAC", "MFA", "OS", "PROCESS", "PROCESS_MULTI"); b["typeId"] {
	case "DOMAIN":
		b["domains"] = []any{w.one("CORP", "b.example")}
	case "MAC":
		b["macAddresses"] = []any{w.one("AA:BB:CC:DD:EE:FF", "aabbccddee00")}
	case "MFA":
		w.maybe(b, "timeoutSeconds", func() any { return w.int(-1, 3) })
		w.maybe(b, "promptOnWake", func() any { return w.bool("wake") })
	case "OS":
		b["operatingSystems"] = []any{M{"type": "Linux", "versions": w.some([]string{">=4.0.0", "~5"}, 2)}}
	case "PROCESS":
		b["process"] = M{"osType": "Windows", "path": `C:\a.exe`, "hashes": w.some([]string{"ab", "cd"}, 2)}
	case "PROCESS_MULTI":
		b["semantic"] = w.one("AllOf", "AnyOf")
		b["processes"] = []any{M{"osType": "Linux", "path": w.one("/a", "/b c"), "hashes": []any{}, "signerFingerprints": w.some([]string{"ab"}, 1)}}
	}
}

func (w *world) policies() {
	w.several("service-policy", 3, func(b M) {
		b["type"], b["semantic"] = w.one("Dial", "Bind"), w.one("AllOf", "AnyOf")
		b["identityRoles"], b["serviceRoles"], b["postureCheckRoles"] = w.roles("identity"), w.roles("service"), w.roles("posture-check")
	})
	w.several("edge-router-policy", 2, func(b M) {
		b["semantic"] = w.one("AllOf", "AnyOf")
		b["identityRoles"], b["edgeRouterRoles"] = w.roles("identity"), w.roles("edge-router")
	})
	w.several("service-edge-router-policy", 2, func(b M) {
		b["semantic"] = w.one("AllOf", "AnyOf")
		b["serviceRoles"], b["edgeRouterRoles"] = w.roles("service"), w.roles("edge-router")
	})
}

// TestRandomNetworks takes networks out of controllers and puts them back:
// what is exported, deleted and applied is exported as the same bytes, and so
// is what is applied over another network.
func TestRandomNetworks(t *testing.T) {
	c := newController(t, shared)
	cas := []string{servertest.Certificate(t, true), servertest.Certificate(t, true)}
	all := manifest.Options{Prune: true}
	rapid.Check(t, func(rt *rapid.T) {
		var exports [2]string
		for i := range exports {
			c.apply(rt, "", all)
			if left := c.text(rt); left != "{}\n" {
				rt.Fatalf("something is left:\n%s", left)
			}
			w := &world{T: rt, names: map[string][]string{}, cas: cas}
			w.build()
			if len(w.raw) > 0 {
				if status, answer := c.post(rt, w.raw); status != 200 {
					rt.Fatalf("status %d: %s", status, answer)
				}
			}
			exports[i] = c.text(rt)
			if p, err := c.plan(rt, exports[i], all); err != nil || len(p.Changes) > 0 {
				rt.Fatalf("its own export changes %v, %v\n%s", p, err, exports[i])
			}
		}
		c.apply(rt, exports[0], all)
		if got := c.text(rt); got != exports[0] {
			rt.Fatalf("over the second network, the first differs (-want +got):\n%s", cmp.Diff(exports[0], got))
		}
		c.apply(rt, "", all)
		c.apply(rt, exports[1], manifest.Options{})
		if got := c.text(rt); got != exports[1] {
			rt.Fatalf("exported and applied, the second differs (-want +got):\n%s", cmp.Diff(exports[1], got))
		}
	})
	c.apply(t, "", all)
}
