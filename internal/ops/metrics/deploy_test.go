package metrics

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDeployed holds the rules and the dashboard that we give away to metrics that there
// are: one that is gone would leave an alert that never comes.
func TestDeployed(t *testing.T) {
	known := map[string]bool{}
	for _, f := range routerFigures {
		known["netkeep_router_"+f.name] = true
	}
	sources, err := filepath.Glob("*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%d sources, %v", len(sources), err)
	}
	literal := regexp.MustCompile(`"(netkeep_[a-z_]*[a-z])"`)
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, found := range literal.FindAllStringSubmatch(read(t, path), -1) {
			known[found[1]] = true
		}
	}
	name := regexp.MustCompile(`netkeep_[a-z_]*[a-z]`)
	for _, path := range []string{"prometheus/netkeep.rules.yml", "grafana/netkeep.json"} {
		used := name.FindAllString(read(t, filepath.Join("..", "..", "..", "deploy", path)), -1)
		if len(used) < 10 {
			t.Errorf("%s names %d metrics", path, len(used))
		}
		for _, metric := range used {
			series := metric
			for _, part := range []string{"_bucket", "_sum", "_count"} {
				series = strings.TrimSuffix(series, part)
			}
			if !known[metric] && !known[series] {
				t.Errorf("%s names %s, which there is not", path, metric)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
