// Package model_test tests the whole model over the Management API: every
// kind, what refers to what, and what follows from what.
package model_test

import (
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

type M = servertest.M

var shared *servertest.Server

func TestMain(m *testing.M) { servertest.Main(m, &shared) }

// samples are the least bodies that create one of each kind, given what they
// refer to.
var samples map[string]func(t *testing.T, c *servertest.Client) M

// They are set here since they make each other.
func init() {
	samples = map[string]func(t *testing.T, c *servertest.Client) M{
		"auth-policies": func(*testing.T, *servertest.Client) M {
			return M{
				"primary": M{
					"cert":   M{"allowed": true, "allowExpiredCerts": false},
					"updb":   M{"allowed": true, "minPasswordLength": 8, "requireSpecialChar": false, "requireNumberChar": false, "requireMixedCase": false, "maxAttempts": 0, "lockoutDurationMinutes": 0},
					"extJwt": M{"allowed": true, "allowedSigners": []any{}},
				},
				"secondary": M{"requireTotp": false},
			}
		},
		"authenticators": func(t *testing.T, c *servertest.Client) M {
			return M{"identityId": create(t, c, "identities", nil), "method": "updb", "username": servertest.Unique("user"), "password": "correct horse"}
		},
		"cas": func(t *testing.T, _ *servertest.Client) M {
			return M{
				"certPem": servertest.Certificate(t, true), "isAuthEnabled": true, "isAutoCaEnrollmentEnabled": true,
				"isOttCaEnrollmentEnabled": true, "identityRoles": []any{"a"},
			}
		},
		"config-types": func(*testing.T, *servertest.Client) M { return M{} },
		"configs": func(t *testing.T, c *servertest.Client) M {
			return M{"configTypeId": create(t, c, "config-types", nil), "data": M{"a": 1}}
		},
		"edge-router-policies": func(*testing.T, *servertest.Client) M { return M{"semantic": "AnyOf"} },
		"edge-routers":         func(*testing.T, *servertest.Client) M { return M{} },
		"enrollments": func(t *testing.T, c *servertest.Client) M {
			return M{"identityId": create(t, c, "identities", nil), "method": "ott", "expiresAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
		},
		"external-jwt-signers": func(*testing.T, *servertest.Client) M {
			return M{
				"enabled": true, "issuer": servertest.Unique("https://issuer"), "audience": "me", "externalAuthUrl": "https://example.org/login",
				"jwksEndpoint": "https://example.org/keys", "kid": servertest.Unique("kid"),
			}
		},
		"identities":                   func(*testing.T, *servertest.Client) M { return M{"type": "User", "isAdmin": false} },
		"posture-checks":               func(*testing.T, *servertest.Client) M { return M{"typeId": "DOMAIN", "domains": []any{"example.org"}} },
		"routers":                      func(*testing.T, *servertest.Client) M { return M{} },
		"service-edge-router-policies": func(*testing.T, *servertest.Client) M { return M{"semantic": "AnyOf"} },
		"service-policies":             func(*testing.T, *servertest.Client) M { return M{"semantic": "AnyOf", "type": "Dial"} },
		"services":                     func(*testing.T, *servertest.Client) M { return M{"encryptionRequired": true} },
		"terminators": func(t *testing.T, c *servertest.Client) M {
			return M{
				"service": create(t, c, "services", nil), "router": create(t, c, "routers", nil),
				"binding": "transport", "address": "tcp:127.0.0.1:1",
			}
		},
	}
}

// nameless are the kinds without a name.
var nameless = map[string]bool{"authenticators": true, "enrollments": true, "terminators": true}

// sample returns a body that creates one of a kind, with members changed.
func sample(t *testing.T, c *servertest.Client, path string, change M) M {
	t.Helper()
	body := samples[path](t, c)
	if !nameless[path] {
		body["name"] = servertest.Unique(path)
	}
	for k, v := range change {
		body[k] = v
	}
	return body
}

// create makes one of a kind and returns its id.
func create(t *testing.T, c *servertest.Client, path string, change M) string {
	t.Helper()
	return c.Post(path, sample(t, c, path, change)).Want(201).ID()
}

// gone reports records that are still there.
func gone(t *testing.T, c *servertest.Client, paths ...string) {
	t.Helper()
	for _, p := range paths {
		c.Get(p).Fails(404, "NOT_FOUND", "")
	}
}
