package kind_test

import (
	"slices"
	"testing"

	"netkeep.internal/internal/lang/kind"
)

func TestHeading(t *testing.T) {
	for path, want := range map[string]string{
		"name": "name", "isAdmin": "admin", "hasApiSession": "api session", "roleAttributes": "roles", "is": "is",
		"primary.updb.allowed": "updb allowed", "certPem": "cert pem", "useExternalID": "use external id", "JWTSigner": "jwt signer",
	} {
		if got := kind.Heading(path); got != want {
			t.Errorf("%s is headed %q, want %q", path, got, want)
		}
	}
}

// tabled is a kind with a member of each sort that tables show in a way of its own.
type tabled struct {
	kind.Meta

	Name   string   `json:"name" kind:"required"`
	Roles  []string `json:"identityRoles" kind:"roles=tabled"`
	Key    string   `json:"key" kind:"secret"`
	Within struct {
		Deep bool `json:"deep"`
	} `json:"within"`
	Other string `json:"other"`
}

func TestTable(t *testing.T) {
	d := kind.Define(kind.Spec[tabled]{Name: "tabled", Path: "tableds", Columns: []string{"name", "within.deep as depth", "identityRoles", "derived"}})
	heads := func(wide bool) (heads, paths []string) {
		for _, c := range d.Table(wide) {
			heads, paths = append(heads, c.Head), append(paths, c.Path)
		}
		return heads, paths
	}
	got, paths := heads(false)
	if want := []string{"name", "depth", "identity roles", "derived"}; !slices.Equal(got, want) {
		t.Errorf("heads are %q, want %q", got, want)
	}
	if want := []string{"name", "within.deep", "identityRolesDisplay", "derived"}; !slices.Equal(paths, want) {
		t.Errorf("paths are %q, want %q", paths, want)
	}
	got, _ = heads(true)
	if want := []string{"name", "depth", "identity roles", "derived", "id", "created at", "updated at", "tags", "other"}; !slices.Equal(got, want) {
		t.Errorf("a wide table has %q, want %q", got, want)
	}
}
