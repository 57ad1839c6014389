package manifest

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// many is a controller with so many identities, and nothing else.
type many int

func (m many) List(_ context.Context, path string) (all []jsontext.Value, err error) {
	if path != "identities" {
		return nil, nil
	}
	for i := range int(m) {
		all = append(all, jsontext.Value(fmt.Sprintf(`{"id":"id-%08d","name":"identity-%d","typeId":"Device","isAdmin":false,"isDefaultAdmin":false,`+
			`"roleAttributes":["one-%d","two-%d","three-%d"],"tags":{},"authPolicyId":"default","externalId":null,"appData":{},"defaultHostingCost":0,`+
			`"defaultHostingPrecedence":"default","serviceHostingCosts":{},"serviceHostingPrecedences":{}}`, i, i, i%300, i%299, i%298)))
	}
	return all, nil
}

// listed is a controller that answers with these records, by path.
type listed map[string][]jsontext.Value

func (l listed) List(_ context.Context, path string) ([]jsontext.Value, error) { return l[path], nil }

// TestFootprint holds what a network takes in memory to a few times what the
// controller says of it: some have a hundred thousand identities.
func TestFootprint(t *testing.T) {
	const records, most = 5000, 2200
	used := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // what tests before this one left with finalizers goes too
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := used()
	n, err := Load(t.Context(), many(records))
	if err != nil {
		t.Fatal(err)
	}
	each := (used() - before) / records
	if each > most {
		t.Errorf("an identity takes %d bytes, and may take %d", each, most)
	}
	text, err := n.Encode(nil)
	if err != nil || len(text) < 50*records {
		t.Errorf("the export has %d bytes (%v)", len(text), err)
	}
	runtime.KeepAlive(n)
}

// TestReferences has what a reference takes not depend on how many records there
// are that it could mean.
func TestReferences(t *testing.T) {
	const references = 200
	text := "service-policies:\n"
	for i := range references {
		text += fmt.Sprintf("  - {name: p%d, type: Dial, semantic: AnyOf, identityRoles: [\"@identity-%d\"], serviceRoles: [\"#all\"]}\n", i, i)
	}
	taken := func(identities int) uint64 {
		n, err := Load(t.Context(), many(identities))
		if err != nil {
			t.Fatal(err)
		}
		f := newFiles()
		f.add("f.yaml", []byte(text))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := Compare(f, n, Options{})
		runtime.ReadMemStats(&after)
		if err != nil || len(p.Changes) != references {
			t.Fatal(p, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := taken(references), taken(20*references)
	if each := (many - min(few, many)) / references; each > 2000 {
		t.Errorf("a reference takes %d bytes more where there are more records", each)
	}
}
