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
