// Package clientgen makes clients from the documents of the APIs, as users
// do. It is a module of its own, so that the generator and what it brings are
// no part of the controller's.
package clientgen

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/util"

	// What clients import.
	_ "github.com/oapi-codegen/runtime"
	_ "go.yaml.in/yaml/v3"
)

// TestClients generates a client from each document that is checked in, which
// another test holds to what the controller serves, and compiles them. They
// exist only for the compiler: nothing is left in the tree.
func TestClients(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for name, document := range map[string]string{"client": "edge-client", "management": "edge-management", "fabric": "fabric"} {
		code := generate(t, name, document)
		methods := []string{"ListVersionWithResponse(", "ListServicesWithResponse("}
		if name != "fabric" {
			methods = append(methods, "AuthenticateWithResponse(")
		}
		for _, method := range methods {
			if !bytes.Contains(code, []byte(method)) {
				t.Errorf("the client of the %s API has no method %s", name, method)
			}
		}
		file := filepath.Join(t.TempDir(), name+".go")
		if err := os.WriteFile(file, code, 0o600); err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(here, name, "client.go")] = file
	}
	list, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "./client", "./management", "./fabric")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("the clients do not compile: %v\n%.5000s", err, out)
	}
}

// generate returns the source of a client with models of everything that it
// sends and gets.
func generate(t *testing.T, name, document string) []byte {
	t.Helper()
	doc, err := util.LoadSwagger(filepath.Join("..", "..", "api", "openapi", document+".json"))
	if err != nil {
		t.Fatal(err)
	}
	code, err := codegen.Generate(doc, codegen.Configuration{
		PackageName: name, Generate: codegen.GenerateOptions{Client: true, Models: true},
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return []byte(code)
}
