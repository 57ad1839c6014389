package model

import (
	"slices"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/schema"
)

// Seed adds the records that every network has. It leaves those alone that
// are already there, so that it may run at every start.
func Seed(w kind.Writer) error {
	for _, name := range []string{"Default", "Device", "Router", "Service", "User"} {
		if err := seed(w, IdentityTypes, &IdentityType{Meta: kind.Meta{ID: name, System: true}, Name: name}); err != nil {
			return err
		}
	}
	for _, t := range postureCheckTypes() {
		if err := seed(w, PostureCheckTypes, t); err != nil {
			return err
		}
	}
	if err := seed(w, AuthPolicies, defaultAuthPolicy()); err != nil {
		return err
	}
	for _, role := range builtInRoles() {
		if err := seedRole(w, role); err != nil {
			return err
		}
	}
	for _, t := range schema.BuiltIn() {
		doc, err := json.Marshal(t.Schema, json.Deterministic(true))
		if err != nil {
			return err
		}
		if err := seedType(w, &ConfigType{Meta: kind.Meta{ID: t.ID}, Name: t.Name, Schema: doc}); err != nil {
			return err
		}
	}
	return nil
}

// seedType adds a built-in config type, or gives one of an earlier version its
// present schema. One that somebody changed stays as it is, and so does one of
// which configs are stored that the schema does not take. A name that somebody
// gave to a type before it was built in stays theirs.
func seedType(w kind.Writer, t *ConfigType) error {
	old, there := ConfigTypes.Get(w, t.ID)
	if _, taken := ConfigTypes.Find(w, "name", t.Name); taken && !there {
		return nil
	}
	if !there {
		return ConfigTypes.Create(w, t)
	}
	if doc, err := decodeObject(old.Schema); err != nil || !schema.Superseded(doc) || t.Check(w, old) != nil {
		return nil
	}
	return ConfigTypes.Edit(w, t.ID, func(now *ConfigType) error {
		now.Schema = t.Schema
		return nil
	})
}

// seedRole adds a built-in role, or has one of an earlier version allow what it
// does now. A name that somebody gave to a role before it was built in stays
// theirs.
func seedRole(w kind.Writer, role *AdminRole) error {
	old, there := AdminRoles.Get(w, role.ID)
	if _, taken := AdminRoles.Find(w, "name", role.Name); !there && taken {
		return nil
	}
	if !there || slices.Equal(old.Allows, role.Allows) {
		return seed(w, AdminRoles, role)
	}
	return AdminRoles.Edit(w, role.ID, func(now *AdminRole) error {
		now.Allows = role.Allows
		return nil
	})
}

func seed[T any](w kind.Writer, k *kind.Kind[T], rec *T) error {
	if _, there := k.Get(w, any(rec).(kind.Record).Base().ID); there {
		return nil
	}
	return k.Create(w, rec)
}

// defaultAuthPolicy applies where no other is given.
func defaultAuthPolicy() *AuthPolicy { return openAuthPolicy(DefaultAuthPolicy, "Default") }

// rescueAuthPolicy is the id of the policy that RescuePolicy makes.
const rescueAuthPolicy = "admin-reset"

// RescuePolicy makes a policy that takes a password for enough, for a network
// whose own policies shut its owner out.
func RescuePolicy(w kind.Writer) (*AuthPolicy, error) {
	open := openAuthPolicy(rescueAuthPolicy, "Admin reset")
	if _, there := AuthPolicies.Get(w, open.ID); there {
		return open, AuthPolicies.Edit(w, open.ID, func(p *AuthPolicy) error {
			p.Primary, p.Secondary = open.Primary, open.Secondary
			return nil
		})
	}
	return open, AuthPolicies.Create(w, open)
}

// openAuthPolicy allows every method and asks for no further factor.
func openAuthPolicy(id, name string) *AuthPolicy {
	return &AuthPolicy{
		Meta: kind.Meta{ID: id},
		Name: name,
		Primary: AuthPrimary{
			Cert:   AuthCert{Allowed: true, AllowExpiredCerts: true},
			UPDB:   AuthUPDB{Allowed: true, MinPasswordLength: MinPassword},
			ExtJWT: AuthExtJWT{Allowed: true, AllowedSigners: []string{}},
		},
	}
}
