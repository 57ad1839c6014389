package api_test

import (
	"strings"
	"testing"
)

// TestListsAreNeverNull has every list of a record in answers, and never as null, but for
// those that only some posture checks have: clients walk through them without a look.
func TestListsAreNeverNull(t *testing.T) {
	forDocuments(t, func(t *testing.T, doc M) {
		lists := 0
		for name, schema := range lookup(doc, "#/components/schemas") {
			if !strings.HasSuffix(name, "Detail") || name == "postureCheckDetail" {
				continue
			}
			required := map[any]bool{}
			names, _ := schema.(M)["required"].([]any)
			for _, member := range names {
				required[member] = true
			}
			members, _ := schema.(M)["properties"].(M)
			for member, is := range members {
				if is.(M)["type"] != "array" {
					continue
				}
				if lists++; is.(M)["nullable"] == true || !required[member] {
					t.Errorf("%s of %s may be null or absent", member, name)
				}
			}
		}
		if lists < 5 {
			t.Errorf("found only %d lists", lists)
		}
	})
}
