package api_test

import (
	"testing"

	"netkeep.internal/test/servertest"
)

func cas() resource {
	return resource{
		path: "cas",
		least: func(t *testing.T, _ *servertest.Client) M {
			return M{
				"name": servertest.Unique("ca"), "certPem": servertest.Certificate(t, true), "isAuthEnabled": true,
				"isAutoCaEnrollmentEnabled": true, "isOttCaEnrollmentEnabled": true, "identityRoles": []any{"guest"},
			}
		},
		more: func(*testing.T, *servertest.Client) M {
			return M{
				"identityNameFormat": "[commonName]", "tags": M{"x": "y"},
				"externalIdClaim": M{
					"location": "SAN_URI", "matcher": "SCHEME", "matcherCriteria": "spiffe",
					"parser": "SPLIT", "parserCriteria": "/", "index": 2.0,
				},
			}
		},
		required: []string{"name", "certPem", "isAuthEnabled", "isAutoCaEnrollmentEnabled", "isOttCaEnrollmentEnabled", "identityRoles"},
		once:     []string{"certPem"},
		also:     M{"identityNameFormat": "[caName]-[commonName]"},
		fixed:    []string{"certPem"},
		unread:   []string{"certPem"},
		defaults: M{"identityNameFormat": "[caName]-[commonName]", "externalIdClaim": absent, "isVerified": false, "tags": M{}},
		links:    []string{"jwt", "verify"},
	}
}

func signers() resource {
	return resource{
		path: "external-jwt-signers",
		least: func(*testing.T, *servertest.Client) M {
			return M{
				"name": servertest.Unique("signer"), "enabled": true, "issuer": servertest.Unique("https://issuer.example.org/"),
				"audience": "netkeep", "jwksEndpoint": "https://example.org/keys",
			}
		},
		more: func(*testing.T, *servertest.Client) M {
			return M{
				"kid": servertest.Unique("key"), "claimsProperty": "email", "useExternalId": true,
				"externalAuthUrl": "https://example.org/login", "tags": M{"x": "y"},
				"clientId": "desktop", "scopes": []any{"openid", "email"}, "targetToken": "ID",
			}
		},
		required: []string{"name", "enabled", "issuer", "audience"},
		nullable: []string{"audience"},
		defaults: M{
			"certPem": nil, "kid": "", "claimsProperty": "sub", "useExternalId": false, "externalAuthUrl": nil,
			"clientId": nil, "scopes": []any{}, "targetToken": "ACCESS", "tags": M{},
		},
	}
}

func terminators() resource {
	return resource{
		path: "terminators",
		least: func(t *testing.T, c *servertest.Client) M {
			return M{
				"service": create(t, c, "services", nil), "router": create(t, c, "routers", nil),
				"binding": "transport", "address": "tcp:127.0.0.1:1",
			}
		},
		more: func(*testing.T, *servertest.Client) M {
			return M{
				"cost": 65535.0, "precedence": "required", "identity": "printer", "identitySecret": "c2VjcmV0", "tags": M{"x": "y"},
			}
		},
		required: []string{"service", "router", "binding", "address"},
		fixed:    []string{"service", "identity", "identitySecret"},
		unread:   []string{"identity", "identitySecret"},
		shown:    M{"service": "serviceId", "router": "routerId", "identitySecret": nil},
		defaults: M{"cost": 0.0, "dynamicCost": 0.0, "precedence": "default", "identity": "", "tags": M{}},
		nameless: true,
	}
}

func routers() resource {
	return resource{
		path:  "routers",
		least: func(*testing.T, *servertest.Client) M { return M{"name": servertest.Unique("router")} },
		more: func(*testing.T, *servertest.Client) M {
			return M{"cost": 65535.0, "disabled": true, "noTraversal": true, "tags": M{"x": "y"}}
		},
		required: []string{"name"},
		defaults: M{"cost": 0.0, "disabled": false, "noTraversal": false, "isVerified": false, "isOnline": false, "tags": M{}},
	}
}

func edgeRouters() resource {
	return resource{
		path:  "edge-routers",
		least: func(*testing.T, *servertest.Client) M { return M{"name": servertest.Unique("edge")} },
		more: func(*testing.T, *servertest.Client) M {
			return M{
				"cost": 65535.0, "disabled": true, "noTraversal": true, "isTunnelerEnabled": true, "roleAttributes": []any{"north"},
				"appData": M{"deep": M{"list": []any{1.0, nil}}}, "tags": M{"x": "y"},
			}
		},
		required: []string{"name"},
		defaults: M{
			"cost": 0.0, "disabled": false, "noTraversal": false, "isTunnelerEnabled": false, "roleAttributes": []any{},
			"appData": M{}, "isVerified": false, "isOnline": false, "tags": M{},
		},
		links: []string{"edge-router-policies"},
	}
}

func postureChecks() resource {
	return resource{
		path: "posture-checks",
		least: func(*testing.T, *servertest.Client) M {
			return M{"name": servertest.Unique("check"), "typeId": "DOMAIN", "domains": []any{"example.org"}}
		},
		more: func(*testing.T, *servertest.Client) M {
			return M{"roleAttributes": []any{"office"}, "tags": M{"x": "y"}}
		},
		required: []string{"name", "typeId", "domains"},
		once:     []string{"typeId"},
		patch:    M{"typeId": "DOMAIN"},
		fixed:    []string{"typeId"},
		defaults: M{"roleAttributes": []any{}, "version": 1.0, "tags": M{}},
	}
}

// policy is what the three kinds of policies have in common: lists of roles,
// each over records of a kind.
func policy(path string, extra M, lists map[string]string, links ...string) resource {
	r := resource{
		path: path,
		least: func(*testing.T, *servertest.Client) M {
			return joined(M{"name": servertest.Unique("policy"), "semantic": "AllOf"}, extra)
		},
		more: func(t *testing.T, c *servertest.Client) M {
			body := M{"tags": M{"x": "y"}}
			for list, of := range lists {
				body[list] = []any{"#some", "@" + create(t, c, of, nil)}
			}
			return body
		},
		required: []string{"name", "semantic"},
		defaults: M{"tags": M{}, "validFrom": nil, "validUntil": nil, "standing": "current"},
		links:    links,
	}
	for name := range extra {
		r.required = append(r.required, name)
	}
	for list := range lists {
		r.defaults[list] = []any{}
	}
	return r
}

func grants() resource {
	return resource{
		path: "grants",
		least: func(t *testing.T, c *servertest.Client) M {
			return M{
				"identityId": create(t, c, "identities", nil), "attribute": "finance", "reason": "quarter end",
				"validUntil": "2999-12-31T23:59:59.999Z",
			}
		},
		more: func(*testing.T, *servertest.Client) M {
			return M{"name": servertest.Unique("grant"), "tags": M{"x": "y"}}
		},
		required: []string{"identityId", "attribute", "reason", "validUntil"},
		once:     []string{"identityId", "attribute", "reason", "validUntil"},
		fixed:    []string{"identityId", "attribute"},
		unread:   []string{"identityId", "attribute"},
		defaults: M{"tags": M{}, "validFrom": nil, "standing": "current", "requestId": nil},
		nameless: true,
	}
}

func servicePolicies() resource {
	return policy("service-policies", M{"type": "Bind"},
		map[string]string{"identityRoles": "identities", "serviceRoles": "services", "postureCheckRoles": "posture-checks"},
		"identities", "posture-checks", "services")
}

func edgeRouterPolicies() resource {
	return policy("edge-router-policies", nil,
		map[string]string{"identityRoles": "identities", "edgeRouterRoles": "edge-routers"}, "edge-routers", "identities")
}

func serviceEdgeRouterPolicies() resource {
	return policy("service-edge-router-policies", nil,
		map[string]string{"serviceRoles": "services", "edgeRouterRoles": "edge-routers"}, "edge-routers", "services")
}

// assertions are about somebody and something that there is, and hold.
func assertions() resource {
	return resource{
		path: "assertions",
		least: func(t *testing.T, c *servertest.Client) M {
			identity, service := create(t, c, "identities", nil), create(t, c, "services", nil)
			return M{
				"name": servertest.Unique("assertion"), "expect": "never",
				"identityRoles": []any{"@" + identity}, "serviceRoles": []any{"@" + service},
			}
		},
		more: func(*testing.T, *servertest.Client) M {
			return M{"type": "Bind", "semantic": "AllOf", "tags": M{"x": "y"}}
		},
		required: []string{"name", "expect", "identityRoles", "serviceRoles"},
		defaults: M{"type": "Dial", "semantic": "AnyOf", "tags": M{}},
	}
}

func adminRoles() resource {
	return resource{
		path: "admin-roles",
		least: func(*testing.T, *servertest.Client) M {
			return M{"name": servertest.Unique("role"), "allows": []any{"service:read"}}
		},
		more: func(*testing.T, *servertest.Client) M {
			return M{"onlyAttributes": []any{"web"}, "onlyTags": M{"team": "web"}, "tags": M{"x": "y"}}
		},
		required: []string{"name", "allows"},
		defaults: M{"onlyAttributes": []any{}, "onlyTags": M{}, "isSystem": false, "tags": M{}},
	}
}

func roleBindings() resource {
	return resource{
		path: "role-bindings",
		least: func(t *testing.T, c *servertest.Client) M {
			return M{"name": servertest.Unique("binding"), "semantic": "AnyOf", "roleId": create(t, c, "admin-roles", nil)}
		},
		more: func(*testing.T, *servertest.Client) M {
			return M{"identityRoles": []any{"#web"}, "tags": M{"x": "y"}}
		},
		required: []string{"name", "semantic", "roleId"},
		defaults: M{"identityRoles": []any{}, "signerId": nil, "claims": M{}, "tags": M{}},
	}
}
