package main

import (
	"fmt"
	"math/rand/v2"
)

// How many role attributes there are to choose from, and how many each record
// has.
const (
	identityAttributes, attributesPerIdentity = 300, 3
	serviceAttributes, attributesPerService   = 100, 2
	routerAttributes, attributesPerRouter     = 20, 2
)

// The beginnings of the names of what fill creates.
const (
	identityPrefix = "bench-identity-"
	servicePrefix  = "bench-service-"
)

// network says what each record of the filled controller looks like. Nothing
// depends on the order in which records are made: each follows from the seed,
// its kind and its number.
type network struct{ seed uint64 }

// random returns the source of a record's choices.
func (n network) random(kind string, i int) *rand.Rand {
	hash := n.seed
	for _, b := range []byte(kind) {
		hash = (hash ^ uint64(b)) * 0x100000001b3
	}
	return rand.New(rand.NewPCG(hash, uint64(i)))
}

// choose picks count different attributes out of those with a prefix.
func choose(r *rand.Rand, prefix string, count, of int) []string {
	chosen := make([]string, count)
	for i, k := range r.Perm(of)[:count] {
		chosen[i] = fmt.Sprintf("%s%03d", prefix, k)
	}
	return chosen
}

type identityBody struct {
	Name           string   `json:"name"`
	Type           string   `json:"type"`
	IsAdmin        bool     `json:"isAdmin"`
	RoleAttributes []string `json:"roleAttributes"`
}

func (n network) identity(i int) identityBody {
	r := n.random("identity", i)
	return identityBody{
		Name: fmt.Sprintf("%s%06d", identityPrefix, i), Type: "Device",
		RoleAttributes: choose(r, "bench-i", attributesPerIdentity, identityAttributes),
	}
}

type configTypeBody struct {
	Name   string         `json:"name"`
	Schema map[string]any `json:"schema"`
}

func configType() configTypeBody {
	return configTypeBody{Name: "bench-address", Schema: map[string]any{
		"type": "object", "required": []string{"host", "port"},
		"properties": map[string]any{
			"host": map[string]any{"type": "string"},
			"port": map[string]any{"type": "integer", "minimum": 1, "maximum": 65535},
		},
	}}
}

type configBody struct {
	Name         string  `json:"name"`
	ConfigTypeID string  `json:"configTypeId"`
	Data         address `json:"data"`
}

type address struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

func (n network) config(i int, typeID string) configBody {
	return configBody{
		Name: fmt.Sprintf("bench-config-%05d", i), ConfigTypeID: typeID,
		Data: address{fmt.Sprintf("host-%05d.example.org", i), 1 + n.random("config", i).IntN(65535)},
	}
}

type serviceBody struct {
	Name               string   `json:"name"`
	EncryptionRequired bool     `json:"encryptionRequired"`
	RoleAttributes     []string `json:"roleAttributes"`
	Configs            []string `json:"configs"`
}

// service has one of the configs, if there are any.
func (n network) service(i int, configs []string) serviceBody {
	r := n.random("service", i)
	s := serviceBody{
		Name: fmt.Sprintf("%s%06d", servicePrefix, i), EncryptionRequired: true,
		RoleAttributes: choose(r, "bench-s", attributesPerService, serviceAttributes),
	}
	if len(configs) > 0 {
		s.Configs = []string{configs[i%len(configs)]}
	}
	return s
}

type routerBody struct {
	Name           string   `json:"name"`
	RoleAttributes []string `json:"roleAttributes"`
}

func (n network) edgeRouter(i int) routerBody {
	r := n.random("edge-router", i)
	return routerBody{
		Name:           fmt.Sprintf("bench-router-%05d", i),
		RoleAttributes: choose(r, "bench-r", attributesPerRouter, routerAttributes),
	}
}

type servicePolicyBody struct {
	Name          string   `json:"name"`
	Type          string   `json:"type"`
	Semantic      string   `json:"semantic"`
	IdentityRoles []string `json:"identityRoles"`
	ServiceRoles  []string `json:"serviceRoles"`
}

func (n network) servicePolicy(i int) servicePolicyBody {
	r := n.random("service-policy", i)
	return servicePolicyBody{
		Name: fmt.Sprintf("bench-service-policy-%05d", i), Type: oneOf(r, "Dial", "Bind"), Semantic: oneOf(r, "AnyOf", "AllOf"),
		IdentityRoles: roles(r, "#bench-i", identityAttributes), ServiceRoles: roles(r, "#bench-s", serviceAttributes),
	}
}

type routerPolicyBody struct {
	Name            string   `json:"name"`
	Semantic        string   `json:"semantic"`
	EdgeRouterRoles []string `json:"edgeRouterRoles"`
	IdentityRoles   []string `json:"identityRoles"`
}

func (n network) routerPolicy(i int) routerPolicyBody {
	r := n.random("edge-router-policy", i)
	return routerPolicyBody{
		Name: fmt.Sprintf("bench-router-policy-%05d", i), Semantic: oneOf(r, "AnyOf", "AllOf"),
		EdgeRouterRoles: roles(r, "#bench-r", routerAttributes), IdentityRoles: roles(r, "#bench-i", identityAttributes),
	}
}

type serviceRouterPolicyBody struct {
	Name            string   `json:"name"`
	Semantic        string   `json:"semantic"`
	EdgeRouterRoles []string `json:"edgeRouterRoles"`
	ServiceRoles    []string `json:"serviceRoles"`
}

func (n network) serviceRouterPolicy(i int) serviceRouterPolicyBody {
	r := n.random("service-edge-router-policy", i)
	return serviceRouterPolicyBody{
		Name: fmt.Sprintf("bench-service-router-policy-%05d", i), Semantic: oneOf(r, "AnyOf", "AllOf"),
		EdgeRouterRoles: roles(r, "#bench-r", routerAttributes), ServiceRoles: roles(r, "#bench-s", serviceAttributes),
	}
}

// roles are one to three.
func roles(r *rand.Rand, prefix string, of int) []string { return choose(r, prefix, 1+r.IntN(3), of) }

func oneOf(r *rand.Rand, values ...string) string { return values[r.IntN(len(values))] }
