package manifest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/lang/document/documenttest"
)

// TestMistakes reads files that cannot be meant, and expects to be told where
// and what.
func TestMistakes(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no YAML":           {"services: [", "f.yaml:1:11: this is not YAML"},
		"a list":            {"- name: x", "f.yaml:1:1: a file holds kinds by their names"},
		"a text":            {"hello", "f.yaml:1:1: a file holds kinds by their names"},
		"unknown kind":      {"services: []\nservice-policys: []", `f.yaml:2:1: there is no kind "service-policys" that files may hold; did you mean "service-policy" or "service-policies"?`},
		"kind not for us":   {"sessions: []", `f.yaml:1:1: there is no kind "sessions" that files may hold`},
		"not a list":        {"services: {name: x}", "services must be a list"},
		"not objects":       {"services: [x]", "f.yaml:1:12: services must be a list of objects"},
		"unknown field":     {"services:\n  - name: wiki\n    rolAttributes: [x]", `f.yaml:3:5: a service has no "rolAttributes"; did you mean "roleAttributes"?`},
		"field inside":      {"auth-policies:\n  - name: p\n    primary:\n      cert: {alowed: true}", `f.yaml:4:14: an auth policy has no "alowed"; did you mean "allowed"?`},
		"field in a list":   {"posture-checks:\n  - {name: p, typeId: OS, operatingSystems: [{type: Linux, version: []}]}", `has no "version"; did you mean "versions"?`},
		"server's own":      {"services:\n  - name: wiki\n    id: abc", `f.yaml:3:5: the controller decides on "id" of a service; leave it out`},
		"wrong type":        {"services:\n  - name: wiki\n    roleAttributes: office", `f.yaml:3:21: service "wiki": roleAttributes must be a list of texts`},
		"type in a list":    {"services:\n  - name: wiki\n    roleAttributes:\n      - office\n      - 7", `service "wiki": roleAttributes must be a list of texts`},
		"number for a name": {"services:\n  - name: 7", "f.yaml:2:11: name must be a text"},
		"wrong word":        {"identities:\n  - name: x\n    type: Person", `f.yaml:3:11: identity "x": type must be`},
		"out of range":      {"edge-routers:\n  - {name: x, cost: 70000}", `edge router "x": cost must be`},
		"no name":           {"services:\n  - roleAttributes: [x]", "f.yaml:2:5: name is required"},
		"missing field":     {"service-policies:\n  - name: p", `f.yaml:2:5: service policy "p": type is required`},
		"twice":             {"services:\n  - name: wiki\n  - name: other\n  - name: wiki", `f.yaml:4:11: there are two services "wiki"; the other is at f.yaml:2`},
		"key twice":         {"services:\n  - name: wiki\n    name: other", "f.yaml:3:5"},
		"no anchor":         {"services: *x", "nothing above is marked &x"},
		"merge":             {"a: &x {name: q}\nservices:\n  - <<: *x", "a name must be a text"},
		"odd tag":           {"services: !!binary aGk=", "not understood"},
		"infinity":          {"services:\n  - name: x\n    tags: {a: .inf}", "f.yaml:3:15"},
		"deep":              {"services: " + strings.Repeat("[", 5000), "more than 64 times"},
		"deep by dashes":    {"services: \n" + strings.Repeat("- ", 5000), "more than 64 times"},
		"rather deep":       {"configs: [{name: x, data: " + strings.Repeat("{a: ", 80) + "1" + strings.Repeat("}", 80) + "}]", "f.yaml:1: lists and objects are in each other more than 64 times"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles()
			f.add("f.yaml", []byte(test.text))
			err := f.mistakes.asError()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
		})
	}
}

// TestBombs refuses files that would fill the memory without filling it.
func TestBombs(t *testing.T) {
	documenttest.Refused(t, func(text string) error {
		_, err := Read([]string{"-"}, strings.NewReader(text))
		return err
	})
	dir := t.TempDir()
	for name, text := range map[string]string{
		"long name":   "services:\n  - name: " + strings.Repeat("x", 50<<20),
		"long quoted": "services:\n  - name: \"" + strings.Repeat("x, ", 16<<20) + "\"",
		"large":       "services:\n" + strings.Repeat("  - name: wiki\n", 70<<20/16),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "f.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Read([]string{file}, nil)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it was taken")
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 50<<20 {
				t.Errorf("to refuse it took %d MB: %v", taken>>20, err)
			}
		})
	}
	// What people write is not taken for one.
	odd := "# Don't \"quote\nservices:\n  - {name: \"it's\"} # isn't\n" + strings.Repeat("# "+strings.Repeat("x", 2000)+"\n", 1000)
	f := newFiles()
	if f.add("f.yaml", []byte(odd)); f.mistakes.asError() != nil {
		t.Error(f.mistakes)
	}
}

// TestManyMistakes tells some at once, and in the order of the file.
func TestManyMistakes(t *testing.T) {
	f := newFiles()
	f.add("f.yaml", []byte("services:\n"+strings.Repeat("  - {nam: x}\n", 50)))
	if len(f.mistakes) != most || f.mistakes[0].Line != 2 || f.mistakes[1].Line != 3 {
		t.Errorf("%d mistakes, the first at line %d", len(f.mistakes), f.mistakes[0].Line)
	}
}

// TestReadPlaces reads directories, files and standard input.
func TestReadPlaces(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"services.yaml": "services: [{name: a}]", "sub/more.yml": "service: [{name: b}]", "x.json": `{"services":[{"name":"c"}]}`,
		"notes.txt": "services: [", ".hidden.yaml": "services: [", ".git/x.yaml": "services: [", "empty.yaml": "", "comment.yaml": "# nothing\n", "two.yaml": "services: [{name: d}]\n---\nservices:\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Read([]string{dir, "-"}, strings.NewReader("services: [{name: e}]"))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(f.records[ours{}.kind("services")]); got != 5 {
		t.Errorf("read %d services", got)
	}
	if _, err := Read([]string{filepath.Join(dir, "none")}, nil); err == nil {
		t.Error("what is not there was read")
	}
	f, err = Read([]string{filepath.Join(dir, "notes.txt")}, nil)
	if f == nil || err == nil || !strings.Contains(err.Error(), "notes.txt:1:") {
		t.Errorf("a file that was named: %v", err)
	}
}

// TestAliases lets a file say something once.
func TestAliases(t *testing.T) {
	f := newFiles()
	f.add("f.yaml", []byte("services:\n  - name: a\n    roleAttributes: &roles [x, y]\n  - name: b\n    roleAttributes: *roles\n"))
	if err := f.mistakes.asError(); err != nil {
		t.Fatal(err)
	}
	if got := string(f.records[ours{}.kind("services")]["b"].body.named("roleAttributes")); got != `["x","y"]` {
		t.Errorf("b has %s", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("services:\n  - name: wiki\n    roleAttributes: [a]\n")
	f.Add(`{"identities":[{"name":"a","typeId":"Default","authPolicy":"@Default"}]}`)
	f.Add("posture-checks:\n- {name: x, typeId: MFA}\n")
	f.Add("a: &a [*a]\nservices: [{name: |\n  x\n}]")
	f.Add("configs: [{name: c, configTypeId: t, data: {a: 1e5, b: 0x10, c: .5, d: ~}}]")
	f.Fuzz(func(t *testing.T, text string) {
		files := newFiles()
		files.add("f", []byte(text))
		for _, m := range files.mistakes {
			if m.Text == "" || strings.Contains(m.String(), "\n") {
				t.Errorf("a mistake is told as %q", m)
			}
		}
		// What was read can be written, and is then read as the same.
		for d, records := range files.records {
			for key, w := range records {
				again := newFiles()
				written, err := document.YAML((&value{members: []member{{name: d.Path, value: &value{list: true, items: []*value{w.said}}}}}).json())
				if err != nil {
					t.Fatalf("%s %q cannot be written: %v", d.Path, key, err)
				}
				again.add("g", written)
				other := again.records[d][key]
				if other == nil {
					t.Fatalf("%s %q is lost: %v", d.Path, key, again.mistakes)
				}
				for _, m := range w.body {
					if is := other.body.of(m.Field); !equal(m.Text, is) {
						t.Errorf("%s %q: %s was %s and is %s", d.Path, key, m.Field.Name, m.Text, is)
					}
				}
			}
		}
	})
}

// TestTalk takes away what OpenZiti's command line says before its export, and
// leaves every line where it was.
func TestTalk(t *testing.T) {
	const talk = "Token: 8b1\nSaving identity 'default' to x.json\n"
	for _, tt := range []struct{ text, want string }{
		{talk + "authPolicies:\n  - name: a\n", "          \n                                   \nauthPolicies:\n  - name: a\n"},
		{talk + "{\n\"services\": []}\n", "          \n                                   \n{\n\"services\": []}\n"},
		{"services:\n  - name: a\nidentities:\n", "services:\n  - name: a\nidentities:\n"},
		{"Token: 1\n", "Token: 1\n"},
		{"", ""},
	} {
		if got := string(withoutTalk([]byte(tt.text))); got != tt.want {
			t.Errorf("%q becomes %q, want %q", tt.text, got, tt.want)
		}
	}
}
