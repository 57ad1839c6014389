// Package promise holds every version to what earlier ones promised: no command, flag,
// setting, operation, member of an object, metric, exported name, value of the chart or
// name in the packages that is written down in testdata/promised.txt may vanish.
package promise

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/router/home"
	"netkeep.internal/internal/run/cli"
	"netkeep.internal/internal/tool/unit"
)

var update = flag.Bool("update", false, "add what there is now to what is promised; nothing is taken away")

// surface is what others build on: words by where they are.
type surface map[string][]string

func (s surface) add(where string, words ...string) { s[where] = append(s[where], words...) }

// has tells whether there is such a word.
func (s surface) has(where, word string) bool { return slices.Contains(s[where], word) }

// TestPromised looks for everything that was promised.
func TestPromised(t *testing.T) {
	now := today(t)
	const path = "testdata/promised.txt"
	if *update {
		for where, words := range promised(t, path) {
			now.add(where, words...)
		}
		if err := os.WriteFile(path, now.text(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := promised(t, path)
	if len(before) < 500 {
		t.Errorf("only %d things are promised", len(before))
	}
	for _, gone := range missing(before, now) {
		t.Errorf("%s was promised and is gone: docs/compatibility.md says what may change when", gone)
	}
}

// TestGone takes one thing of every kind away, and sees it missed.
func TestGone(t *testing.T) {
	before := today(t)
	for _, c := range []struct{ where, word string }{
		{"command netkeep login", "--username"},
		{"command netkeep grant", ""},
		{"settings of a controller", "cluster.listen"},
		{"settings of a controller", "NETKEEP_CLUSTER_LISTEN"},
		{"settings of a router", "linkListen"},
		{"operation edge-management GET:/services", "listServices"},
		{"object fabric circuitDetail", "path"},
		{"metrics", "netkeep_ready"},
		{"metrics", "netkeep_router_ready"},
		{"overlay func Open", ""},
		{"values of the chart", "controllers.joinSecret"},
		{"packages", "netkeep-router.service"},
	} {
		now := maps.Clone(before)
		if !before.has(c.where, c.word) && c.word != "" || before[c.where] == nil {
			t.Errorf("there is no %s of %s", c.word, c.where)
			continue
		}
		if c.word == "" {
			delete(now, c.where)
		} else {
			now[c.where] = slices.DeleteFunc(slices.Clone(before[c.where]), func(w string) bool { return w == c.word })
		}
		if got := missing(before, now); len(got) == 0 {
			t.Errorf("that %s of %s is gone is not seen", c.word, c.where)
		}
	}
}

// missing is what there was and is no more.
func missing(before, now surface) (gone []string) {
	for _, where := range slices.Sorted(maps.Keys(before)) {
		if _, there := now[where]; !there {
			gone = append(gone, where)
			continue
		}
		for _, word := range before[where] {
			if !now.has(where, word) {
				gone = append(gone, word+" of "+where)
			}
		}
	}
	return gone
}

// text has a line for each place, so that two people who add something seldom meet.
func (s surface) text() []byte {
	var out strings.Builder
	for _, where := range slices.Sorted(maps.Keys(s)) {
		words := slices.Compact(slices.Sorted(slices.Values(s[where])))
		out.WriteString(strings.TrimSpace(where+": "+strings.Join(words, " ")) + "\n")
	}
	return []byte(out.String())
}

func promised(t *testing.T, path string) surface {
	t.Helper()
	all := surface{}
	for line := range strings.Lines(read(t, path)) {
		// Paths have no ": " in them.
		where, words, _ := strings.Cut(strings.TrimSuffix(line, "\n")+" ", ": ")
		all.add(strings.TrimSuffix(strings.TrimSpace(where), ":"), strings.Fields(words)...)
	}
	return all
}

// today is what there is.
func today(t *testing.T) surface {
	t.Helper()
	all := surface{}
	commands(all, cli.Root(cli.Env{}))
	c := config.Default()
	for s := range c.Settings() {
		all.add("settings of a controller", s.Key, s.Env)
	}
	for s := range config.Of(new(home.Settings)) {
		all.add("settings of a router", s.Key, s.Env)
	}
	for _, api := range []string{"edge-client", "edge-management", "fabric"} {
		operations(t, all, api)
	}
	figures(t, all)
	exported(t, all)
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "../../deploy/helm/netkeep/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	flat(all, "", values)
	all.add("packages", slices.Collect(maps.Keys(unit.Packaged()))...)
	for line := range strings.Lines(unit.Packaged()["sysusers.conf"]) {
		all.add("packages", "user:"+strings.Fields(line)[1])
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commands are those that are not hidden, and the flags of each.
func commands(all surface, c *cobra.Command) {
	if c.Hidden {
		return
	}
	all.add("command "+c.CommandPath(), c.Aliases...)
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			all.add("command "+c.CommandPath(), "--"+f.Name)
		}
	})
	for _, sub := range c.Commands() {
		commands(all, sub)
	}
}

// operations are those of the checked-in specification, which test/api holds to what is
// served, and the members of its objects.
func operations(t *testing.T, all surface, api string) {
	t.Helper()
	var spec struct {
		Paths      map[string]map[string]struct{ OperationID string }
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join("..", "..", "api", "openapi", api+".json"))), &spec); err != nil {
		t.Fatal(err)
	}
	for path, methods := range spec.Paths {
		for method, op := range methods {
			if op.OperationID != "" {
				all.add("operation "+api+" "+strings.ToUpper(method)+":"+path, op.OperationID)
			}
		}
	}
	for name, object := range spec.Components.Schemas {
		all.add("object "+api+" "+name, slices.Collect(maps.Keys(object.Properties))...)
	}
}

// figures are the metrics that sources name.
func figures(t *testing.T, all surface) {
	t.Helper()
	sources, err := filepath.Glob("../../internal/ops/metrics/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	named, router := regexp.MustCompile(`"(netkeep_[a-z_]*[a-z])"`), regexp.MustCompile(`(?m)^\t\{"([a-z_]+)", "[A-Z]`)
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(read(t, path), -1) {
			all.add("metrics", m[1])
		}
		if filepath.Base(path) == "router.go" {
			for _, m := range router.FindAllStringSubmatch(read(t, path), -1) {
				all.add("metrics", "netkeep_router_"+m[1])
			}
		}
	}
}

// flat are the keys of the chart's values.
func flat(all surface, prefix string, values map[string]any) {
	for key, value := range values {
		if below, is := value.(map[string]any); is && len(below) > 0 && key != "resources" {
			flat(all, prefix+key+".", below)
			continue
		}
		all.add("values of the chart", prefix+key)
	}
}
