package takeover_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/test/servertest"
)

// listing reads records from a controller.
type listing struct{ c *servertest.Client }

func (l listing) List(_ context.Context, path string) (all []jsontext.Value, err error) {
	for _, rec := range l.c.Get(path + "?limit=500").Want(http.StatusOK).List() {
		text, err := json.Marshal(rec)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// TestBack writes a network as OpenZiti's command line reads it. As we read the same, nothing
// in it is different.
func TestBack(t *testing.T) {
	n := takeOver(t, "1.6.20")
	admin := n.admin(t)
	admin.Post("service-policies", M{"name": "for a while", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#all"}, "serviceRoles": []string{"#all"}, "validUntil": "2099-01-01T00:00:00Z"}).Want(http.StatusCreated)
	network, err := manifest.Load(t.Context(), listing{admin})
	if err != nil {
		t.Fatal(err)
	}
	text, left, err := network.EncodeAbroad()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"service-policies/for a while: it counts for a time alone", "identities/dave: serviceHostingCosts", "identities/dave: appData, which is more than texts and numbers", "service-configs: all 1", "cas/" + n.lists["cas"][0]["name"].(string) + ": whether it is verified; there it is not", "service-policies/staff dials: it names posture checks by their names, which the import does not find; those by attributes it does"} {
		if !slices.Contains(left, want) {
			t.Errorf("it does not say %q: %q", want, left)
		}
	}
	for _, want := range []string{`"authPolicy": "@Default"`, `"configType": "@host.v1"`, `"certificateAuthorities": [`, `"typeId": "Default"`, `"type": "Bind"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it does not hold %s", want)
		}
	}
	if strings.Contains(string(text), "for a while") {
		t.Error("what was for a while would be for ever")
	}
	file := filepath.Join(t.TempDir(), "network.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := manifest.Read([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := manifest.Compare(files, network, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// What it cannot say of these is said above.
	known := []string{n.facts.IDs["dave"], n.facts.IDs["bob"]}
	for _, s := range n.lists["services"] {
		if s["name"] == "plain" {
			known = append(known, s["id"].(string))
		}
	}
	for _, c := range plan.Changes {
		if !slices.Contains(known, c.Target) {
			t.Errorf("read again it changes %+v", c)
		}
	}
}
