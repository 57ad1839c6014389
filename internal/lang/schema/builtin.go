package schema

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// Type is a config type that exists in every network.
type Type struct {
	ID     string
	Name   string
	Schema map[string]any
}

// documents holds one schema per built-in type, and in definitions.json what
// they share.
//
//go:embed builtin/*.json
var documents embed.FS

// BuiltIn returns the built-in config types. Clients know them by these names
// and ids. The schemas are complete in themselves and belong to the caller.
func BuiltIn() []Type {
	return []Type{
		{"f2dd2df0-9c04-4b84-a91e-71437ac229f1", "ziti-tunneler-client.v1", document("ziti-tunneler-client.v1")},
		{"cea49285-6c07-42cf-9f52-09a9b115c783", "ziti-tunneler-server.v1", document("ziti-tunneler-server.v1")},
		{"g7cIWbcGg", "intercept.v1", document("intercept.v1")},
		{"NH5p4FpGR", "host.v1", document("host.v1")},
		{"host.v2", "host.v2", document("host.v2")},
		{"proxy.v1", "proxy.v1", document("proxy.v1")},
		{"interfaces.v1", "interfaces.v1", document("interfaces.v1")},
		{"host-interfaces.v1", "host-interfaces.v1", document("host-interfaces.v1")},
	}
}

// superseded are the digests of the schemas that built-in types had in earlier
// versions, which are replaced where they are still stored.
var superseded = map[string]bool{
	"1e6843b3d6aaff34159e2791579b0903a673ec08f504a8de2b81c5175e60f526": true, // intercept.v1
	"a2314e70c6977172f55c4e35534fed07b7f360368023217fd03cbd82b5f3e446": true, // host.v1
	"f14278bafdaf70cace07b9adc80be3d3c029b6559c8069b9c7a15cff0aa461aa": true, // host.v2
}

// Superseded reports whether a schema is what a built-in type had in an earlier
// version, to the letter.
func Superseded(doc map[string]any) bool { return superseded[digest(doc)] }

func digest(doc map[string]any) string {
	text, err := json.Marshal(doc) // which sorts members
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// document returns a schema with the definitions that it needs. A host.v1
// object is the terminator of host.v2.
func document(name string) map[string]any {
	shared := load("definitions")
	terminator := load("host.v1")
	delete(terminator, "$schema")
	shared["terminator"] = terminator

	doc := load(name)
	needed := make(map[string]any)
	gather(doc, shared, needed)
	if len(needed) > 0 {
		doc["definitions"] = needed
	}
	return doc
}

// gather copies into needed the definitions that v refers to, and those that
// they refer to in turn.
func gather(v any, shared, needed map[string]any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			gather(item, shared, needed)
		}
	case map[string]any:
		for _, member := range v {
			gather(member, shared, needed)
		}
		ref, _ := v["$ref"].(string)
		name, ok := strings.CutPrefix(ref, "#/definitions/")
		if ok && needed[name] == nil {
			needed[name] = shared[name]
			gather(shared[name], shared, needed)
		}
	}
}

// load reads an embedded document, which the tests prove to be well formed.
func load(name string) map[string]any {
	text, err := documents.ReadFile("builtin/" + name + ".json")
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		panic(fmt.Sprintf("schema: built-in %s: %v", name, err))
	}
	return doc
}
