package model

import (
	"maps"
	"slices"
	"strings"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/spell"
)

// RoleViewer is the id of the role that reads everything but secrets.
const RoleViewer = "viewer"

// seeAll is the permission to read everything, which is what the role viewer allows.
const seeAll = "admin_readonly"

// permitted are the words for what an identity of OpenZiti 2 may do, and what each allows:
// a word alone allows all that it has with a verb, and word.verb what is told of it. It is
// nowhere more than those words are good for there.
var permitted = map[string]map[string]string{
	"auth-policy":         verbs("auth-policy"),
	"ca":                  with(verbs("ca"), "update", "ca:verify"),
	"config":              verbs("config"),
	"config-type":         verbs("config-type"),
	"controllers":         {"read": "controller:read cluster:read"},
	"edge-router-policy":  verbs("edge-router-policy"),
	"enrollment":          {"read": "enrollment:read enrollment:reveal", "create": "enrollment:create", "update": "enrollment:refresh", "delete": "enrollment:delete"},
	"external-jwt-signer": verbs("ext-jwt-signer"),
	"identity": with(with(verbs("identity"), "read", "identity-type:read service-config:read"),
		"update", "identity:disable identity:reset-mfa identity:trace service-config:create service-config:delete"),
	"ops": {
		"read":   "api-session:read session:read circuit:read link:read",
		"update": "link:update router:inspect",
		"delete": "api-session:delete session:delete circuit:delete link:delete",
	},
	"posture-check": with(verbs("posture-check"), "read", "posture-check-type:read"),
	"router": {
		"read":   "edge-router:read edge-router:reveal router:read router:reveal",
		"create": "edge-router:create router:create",
		"update": "edge-router:update edge-router:re-enroll router:update",
		"delete": "edge-router:delete router:delete",
	},
	"service":                    verbs("service"),
	"service-edge-router-policy": verbs("service-edge-router-policy"),
	"service-policy":             verbs("service-policy"),
	"terminator":                 verbs("terminator"),
}

// verbs are those that each kind has.
func verbs(what string) map[string]string {
	all := map[string]string{}
	for _, verb := range []string{"read", "create", "update", "delete"} {
		all[verb] = what + ":" + verb
	}
	return all
}

// with adds to what one verb allows.
func with(all map[string]string, verb, more string) map[string]string {
	all[verb] += " " + more
	return all
}

// permissionRoles are the roles that permissions stand for, by their words; that of a
// built-in role is with the others of the network.
var permissionRoles = func() map[string]*AdminRole {
	all := map[string]*AdminRole{}
	add := func(word, allows string) {
		all[word] = &AdminRole{Meta: kind.Meta{ID: word, System: true}, Name: word, Allows: strings.Fields(allows)}
	}
	for what, verbs := range permitted {
		var every []string
		for verb, allows := range verbs {
			every = append(every, allows)
			add(what+"."+verb, allows)
		}
		slices.Sort(every)
		add(what, strings.Join(every, " "))
	}
	for _, role := range builtInRoles() {
		if role.ID == RoleViewer {
			all[seeAll] = role
		}
	}
	return all
}()

// PermissionRole is the role that a permission stands for.
func PermissionRole(word string) (*AdminRole, bool) {
	role, known := permissionRoles[word]
	return role, known
}

// checkPermissions refuses words that stand for nothing. Those that the identity had
// from before stay.
func (i *Identity) checkPermissions(old *Identity) error {
	for _, word := range i.Permissions {
		if _, known := permissionRoles[word]; !known && (old == nil || !slices.Contains(old.Permissions, word)) {
			return fault.Invalid("permissions", "must be what a permission of OpenZiti 2 can be, such as service.read; the nearest is "+
				spell.Nearest(word, slices.Sorted(maps.Keys(permissionRoles))), word)
		}
	}
	return nil
}
