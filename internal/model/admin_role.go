package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/spell"
)

// AdminRole is a part of the power over a network: what its holders may do, and to
// which records.
type AdminRole struct {
	kind.Meta

	Name           string            `json:"name" kind:"required,unique,range=1..256" doc:"What people call the role; no two admin roles have the same name."`
	Allows         []string          `json:"allows" kind:"required,range=1..200,nofilter" doc:"What holders may do, each as what:verb, such as service:read; * stands for every kind or every verb."`
	OnlyAttributes []string          `json:"onlyAttributes" kind:"range=0..50,nofilter" doc:"Role attributes that a record must have, all of them, for the role to be about it; the role is about all records if neither these nor onlyTags are given."`
	OnlyTags       map[string]string `json:"onlyTags" kind:"nofilter" doc:"Tags that a record must have, all of them with these texts, for the role to be about it."`
}

// AdminRoles is the kind.
var AdminRoles = kind.Define(kind.Spec[AdminRole]{
	Name:    "admin-role",
	Path:    "admin-roles",
	Doc:     "Create an admin role: what those may do who run a part of the network, and to which records.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "allows", "onlyAttributes", "onlyTags"},
	InFiles: true,
})

// RoleBinding gives an admin role to identities by their role attributes, or to
// machines by what an issuer of tokens says of them.
type RoleBinding struct {
	kind.Meta

	Name          string   `json:"name" kind:"required,unique,range=1..256" doc:"What people call the binding; no two role bindings have the same name."`
	RoleID        string   `json:"roleId" kind:"required,ref=admin-role:restrict,as=role" doc:"Id of the admin role."`
	Semantic      string   `json:"semantic" kind:"required,enum=AllOf|AnyOf,usual=AnyOf" doc:"Whether the role list picks what has all of its attributes (AllOf) or any of them (AnyOf); ids that it lists are picked either way."`
	IdentityRoles []string `json:"identityRoles" kind:"roles=identity" doc:"Which identities have the role: #attribute, @id, or #all alone for all of them; none if empty."`
	SignerID      string   `json:"signerId" kind:"nullable,ref=ext-jwt-signer:cascade,as=signer" doc:"Id of an external JWT signer whose tokens, as bearer tokens of the Management API, have the role without any login if they say what claims asks for; null if none do. The signer must have an audience."`

	Claims map[string]string `json:"claims" kind:"nofilter" doc:"What claims of such a token must say, or hold in a list, all of them, by the name or JSON pointer of the claim; at least one if there is a signerId."`
}

// Check wants a binding to a signer to say whom it is for.
func (b *RoleBinding) Check(r kind.Reader, _ *RoleBinding) error {
	if b.SignerID == "" {
		if len(b.Claims) > 0 {
			return fault.Invalid("claims", "needs signerId beside it, which says whose tokens they are of", len(b.Claims))
		}
		return nil
	}
	if signer, there := ExtJWTSigners.Get(r, b.SignerID); there && signer.Audience == "" {
		return fault.Invalid("signerId", "must be a signer with an audience, or tokens that it made for any other application would have the role", signer.Name)
	}
	if len(b.Claims) == 0 || len(b.Claims) > 50 {
		return fault.Invalid("claims", "must be 1 to 50 long beside signerId, or every token of the signer would have the role", len(b.Claims))
	}
	for _, selector := range slices.Sorted(maps.Keys(b.Claims)) {
		if !isSelector(selector) || b.Claims[selector] == "" {
			return fault.Invalid("claims", wrongSelector+", and what it must say not empty", selector)
		}
	}
	return nil
}

// RoleBindings is the kind.
var RoleBindings = kind.Define(kind.Spec[RoleBinding]{
	Name:    "role-binding",
	Path:    "role-bindings",
	Doc:     "Create a role binding: which identities have an admin role, or which tokens of an external JWT signer.",
	Verbs:   kind.CRUD,
	Columns: []string{"name", "role.name as role", "semantic", "identityRoles"},
	InFiles: true,
})

// RoleAdmin is the id of the role that allows everything, as isAdmin does.
const RoleAdmin = "admin"

// powers is all that roles can allow: what a thing is, and what can be done to it.
// Kinds have their own names. Every operation that is not for everybody needs one
// of these, and each is needed by one.
var powers = []struct{ what, verbs string }{
	{"access", "read"}, // who can what, and why
	{"access-request", "read decide"},
	{"admin-role", "read create update delete"},
	{"alert", "read test"},
	{"api-session", "read delete"},
	{"assertion", "read create update delete override"},
	{"audit-entry", "read verify"},
	{"auth-policy", "read create update delete"},
	{"authenticator", "read create update delete re-enroll extend"},
	{"ca", "read create update delete verify reveal"},
	{"circuit", "read delete"},
	{"cluster", "read invite promote remove"},
	{"config", "read create update delete"},
	{"config-type", "read create update delete"},
	{"controller", "read"},
	{"database", "read check fix snapshot verify"},
	{"edge-router", "read create update delete re-enroll reveal"},
	{"edge-router-policy", "read create update delete"},
	{"enrollment", "read create delete refresh reveal"},
	{"event", "read"},
	{"ext-jwt-signer", "read create update delete preview"},
	{"grant", "read create update delete"},
	{"identity", "read create update delete disable reset-mfa trace"},
	{"identity-type", "read"},
	{"link", "read update delete"},
	{"posture-check", "read create update delete"},
	{"posture-check-type", "read"},
	{"role-binding", "read create update delete"},
	{"router", "read create update delete inspect reveal"},
	{"service", "read create update delete"},
	{"service-config", "read create delete"},
	{"service-edge-router-policy", "read create update delete"},
	{"service-policy", "read create update delete"},
	{"session", "read delete"},
	{"status", "read"},
	{"terminator", "read create update delete"},
	{"token", "read create update delete"},
}

// Powers lists all that roles can allow, as what:verb, in order.
var Powers = func() (all []string) {
	for _, p := range powers {
		for verb := range strings.FieldsSeq(p.verbs) {
			all = append(all, p.what+":"+verb)
		}
	}
	slices.Sort(all)
	return all
}()

// Expand lists the powers that one entry of a role stands for; none if there is no
// such thing, or nothing of the kind can be done to it.
func Expand(entry string) (all []string) {
	what, verb, ok := strings.Cut(entry, ":")
	if entry == "*" {
		what, verb, ok = "*", "*", true
	}
	if !ok {
		return nil
	}
	for _, p := range Powers {
		w, v, _ := strings.Cut(p, ":")
		if (what == "*" || what == w) && (verb == "*" || verb == v) {
			all = append(all, p)
		}
	}
	return all
}

// Check wants a role to allow something that there is, and a limit that can be
// held: policies are about other records than themselves, so that what their
// author may do to a few would say nothing of whom they let in.
func (a *AdminRole) Check(kind.Reader, *AdminRole) error {
	for _, entry := range a.Allows {
		all := Expand(entry)
		if len(all) == 0 {
			return fault.Invalid("allows", "must be what:verb, such as service:read; the nearest is "+nearestPower(entry), entry)
		}
		for _, p := range all {
			if slices.Contains(leading, p) && (a.Limited() || !a.whole()) {
				return fault.Invalid("allows", "leads to all power, since a controller that joins has all keys; it is part of the role admin alone", p)
			}
			if !a.Limited() {
				continue
			}
			if w, v, _ := strings.Cut(p, ":"); v != "read" && slices.Contains(selecting, w) {
				return fault.Invalid("allows", "cannot be limited by onlyAttributes or onlyTags, since it decides about records of other kinds; make a role of its own for it", p)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.OnlyTags)) {
		if name == "" || len(name)+len(a.OnlyTags[name]) > 1000 {
			return fault.Invalid("onlyTags", "must be names of tags with their texts", name)
		}
	}
	if len(a.OnlyTags) > 50 {
		return fault.Invalid("onlyTags", "must be 0 to 50 long", len(a.OnlyTags))
	}
	for _, attribute := range a.OnlyAttributes {
		if attribute == "" || attribute[0] == '#' || attribute[0] == '@' {
			return fault.Invalid("onlyAttributes", "must be a role attribute, without # or @ before it", attribute)
		}
	}
	return nil
}

// leading are the powers by which their holders could get all others.
var leading = []string{"cluster:invite"}

// whole reports whether the role allows everything.
func (a *AdminRole) whole() bool {
	all := map[string]bool{}
	for _, entry := range a.Allows {
		for _, p := range Expand(entry) {
			all[p] = true
		}
	}
	return len(all) == len(Powers)
}

// selecting are the kinds whose records decide about others.
var selecting = []string{
	AdminRoles.Name, AuthPolicies.Name, CAs.Name, EdgeRouterPolicies.Name, ExtJWTSigners.Name, Grants.Name, RoleBindings.Name,
	ServiceEdgeRouterPolicies.Name, ServicePolicies.Name,
}

// otherVerbs are what people call verbs elsewhere.
var otherVerbs = map[string]string{
	"list": "read", "get": "read", "view": "read", "add": "create", "new": "create", "edit": "update", "write": "update", "change": "update", "patch": "update",
	"remove": "delete", "revoke": "delete",
}

// nearestPower is the power that an unknown entry may stand for: what it is about
// counts first.
func nearestPower(entry string) string {
	what, verb, _ := strings.Cut(entry, ":")
	for _, p := range powers {
		if p.what == what {
			if meant := otherVerbs[verb]; slices.Contains(strings.Fields(p.verbs), meant) {
				return what + ":" + meant
			}
			return what + ":" + spell.Nearest(verb, strings.Fields(p.verbs))
		}
	}
	return spell.Nearest(entry, Powers)
}

// Limited reports whether the role is about some records alone.
func (a *AdminRole) Limited() bool { return len(a.OnlyAttributes)+len(a.OnlyTags) > 0 }

// About reports whether the role is about a record of a kind.
func (a *AdminRole) About(d *kind.Def, rec kind.Record) bool {
	if !a.Limited() {
		return true
	}
	if len(a.OnlyAttributes) > 0 && (d.Attributes == nil || len(without(a.OnlyAttributes, d.AttributesOf(rec))) > 0) {
		return false
	}
	tags := rec.Base().Tags
	for name, text := range a.OnlyTags {
		if has, ok := tags[name]; !ok || fmt.Sprint(has) != text {
			return false
		}
	}
	return true
}

// builtInRoles are the roles that every network has.
func builtInRoles() []*AdminRole {
	role := func(name string, allows ...string) *AdminRole {
		return &AdminRole{Meta: kind.Meta{ID: name, System: true}, Name: name, Allows: allows}
	}
	return []*AdminRole{
		role(RoleAdmin, "*"),
		role(RoleViewer, "*:read"),
		role("auditor", "*:read", "audit-entry:verify", "database:verify"),
		role("helpdesk",
			"*:read", "identity:create", "identity:disable", "identity:reset-mfa", "enrollment:*",
			"authenticator:re-enroll", "authenticator:extend", "authenticator:delete", "api-session:delete", "session:delete"),
		role("operator",
			"*:read", "edge-router:*", "router:*", "terminator:delete", "circuit:*", "link:*", "database:*", "identity:trace", "session:delete", "token:*"),
		role("policy-author",
			"*:read", "service:*", "config:*", "config-type:*", "service-config:*", "posture-check:*", "service-policy:*",
			"edge-router-policy:*", "service-edge-router-policy:*", "token:*"),
	}
}
