package api_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/web/api"
	"netkeep.internal/test/servertest"
)

var specIDs = []string{"edge-client", "edge-management", "fabric"}

// served returns a specification as the controller serves it.
func served(t *testing.T, id, accept string) *servertest.Answer {
	t.Helper()
	c := shared.Nobody(t)
	if accept != "" {
		c = c.With("Accept", accept)
	}
	return c.Get("specs/" + id + "/spec").Want(200)
}

// TestOpenAPI compares the specifications with those that are checked in, so
// that a review sees when the contract changes.
func TestOpenAPI(t *testing.T) {
	for _, id := range specIDs {
		t.Run(id, func(t *testing.T) {
			text := jsontext.Value(served(t, id, "application/json").Raw)
			if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
				t.Fatal(err)
			}
			got := append(text, '\n')
			golden := filepath.Join("..", "..", "api", "openapi", id+".json")
			if *update {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("differs from %s; if it is meant to, refresh with -update (-checked in +served):\n%s", golden, diff)
			}
		})
	}
}

func TestOpenAPIIsValid(t *testing.T) {
	for _, id := range specIDs {
		doc, err := openapi3.NewLoader().LoadFromData(served(t, id, "application/json").Raw)
		if err != nil {
			t.Fatal(err)
		}
		err = doc.Validate(t.Context(), openapi3.EnableSchemaFormatValidation(), openapi3.EnableSchemaPatternValidation(),
			openapi3.EnableSchemaDefaultsValidation(), openapi3.EnableExamplesValidation(), openapi3.ProhibitExtensionsWithRef())
		if err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if doc.Info.Version != api.Version {
			t.Errorf("%s has version %s", id, doc.Info.Version)
		}
	}
}

// TestOpenAPIForms checks that the YAML says what the JSON says.
func TestOpenAPIForms(t *testing.T) {
	for _, id := range specIDs {
		asJSON := served(t, id, "text/html, application/json;q=0.9")
		if got := asJSON.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: asked for JSON, got %s", id, got)
		}
		asYAML := served(t, id, "")
		for _, accept := range []string{"*/*", "text/yaml"} {
			a := served(t, id, accept)
			if got := a.Header.Get("Content-Type"); got != "text/yaml" || !bytes.Equal(a.Raw, asYAML.Raw) {
				t.Errorf("%s: Accept %q gets %s of %d bytes", id, accept, got, len(a.Raw))
			}
		}
		converted, err := yaml.YAMLToJSON(asYAML.Raw)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(converted, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON.JSON, got); diff != "" {
			t.Errorf("%s: forms differ (-json +yaml):\n%s", id, diff)
		}
	}
}

func TestSpecs(t *testing.T) {
	c := shared.Nobody(t)
	for _, root := range []string{api.ClientRoot, api.ManagementRoot} {
		a := c.Get(root + "/specs").Want(200)
		if diff := cmp.Diff(specIDs, names(a)); diff != "" {
			t.Errorf("specs differ (-want +got):\n%s", diff)
		}
		for _, entry := range a.List() {
			self := "./specs/" + entry["id"].(string)
			want := M{"self": M{"href": self}, "spec": M{"href": self + "/spec"}}
			if diff := cmp.Diff(want, entry["_links"]); diff != "" {
				t.Errorf("links differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(any(entry), c.Get(root+self[1:]).Want(200).At("data")); diff != "" {
				t.Errorf("entry and detail differ:\n%s", diff)
			}
		}
	}
}

// TestOpenAPIKeepsSecrets looks for members that no answer may have.
func TestOpenAPIKeepsSecrets(t *testing.T) {
	secret := regexp.MustCompile(`(?i)passwordHash|tokenHash|salt"`)
	for _, id := range specIDs {
		if found := secret.FindString(string(served(t, id, "application/json").Raw)); found != "" {
			t.Errorf("%s speaks of %q", id, found)
		}
	}
}
