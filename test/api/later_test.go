package api_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestOperationsOfOthers has every operation that specifications of others list: it
// does something, or it says what to do instead. What was added to them later is in a
// table of the documentation, and so is which of it is not offered.
func TestOperationsOfOthers(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("testdata", "operations-of-others.txt"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "openziti.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		told[row[1]] = row[2]
	}
	param := regexp.MustCompile(`\{[^}]*\}`)
	served := map[string]string{}
	for _, root := range []string{"/edge/client/v1", "/edge/management/v1", "/fabric/v1"} {
		for name, op := range shared.Operations(root) {
			served[param.ReplaceAllString(name, "{}")] = op.Summary + op.Description
		}
	}
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		name := words[0] + " " + words[1]
		does, there := served[param.ReplaceAllString(name, "{}")]
		if !there {
			t.Errorf("%s is not here", name)
			continue
		}
		row, listed := told[name]
		if wanted := len(words) == 3 || strings.HasPrefix(words[1], "/fabric"); wanted != listed {
			t.Errorf("%s is in the table: %v", name, listed)
		}
		if offered := !strings.Contains(does, "Not offered here"); offered == strings.Contains(row, "sentence") {
			t.Errorf("%s is offered: %v, and the table says %q", name, offered, row)
		}
		delete(told, name)
	}
	for name := range told {
		t.Errorf("the table has %s, which nobody else has", name)
	}
}

// TestElsewhere tells who calls what is not offered where it is instead.
func TestElsewhere(t *testing.T) {
	admin := shared.Admin(t)
	for _, path := range []string{"controller-settings", "revocations"} {
		if list := admin.Get(path).Want(200).List(); len(list) != 0 {
			t.Errorf("%s: %v", path, list)
		}
		admin.Post(path, M{}).Fails(405, "METHOD_NOT_ALLOWED", "")
	}
	shared.Nobody(t).Get("/edge/client/v1/enroll/jwks").Fails(405, "METHOD_NOT_ALLOWED", "")
	if words := shared.Nobody(t).Get("enumerated-capabilities").Want(200).JSON.(M)["data"].([]any); len(words) != 2 {
		t.Errorf("the capabilities are %v", words)
	}
	if members := admin.Get("/fabric/v1/cluster/list-members").Want(200).List(); len(members) != 1 || members[0]["connected"] != true {
		t.Errorf("the controllers: %v", members)
	}
	admin.Post("/fabric/v1/cluster/add-member", M{"address": "tls:127.0.0.1:1", "isVoter": true}).Fails(405, "METHOD_NOT_ALLOWED", "")
}
