package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"netkeep.internal/internal/ops/config"
)

var update = flag.Bool("update", false, "rewrite the goldens")

const referenceHead = `# Configuration

This page is written from the code: ` + "`make golden`" + ` refreshes it.

A controller needs no settings. Each that it is given comes from one YAML file,
from the environment, or from a flag. A variable wins over the file, and a flag
over both.

` + "```yaml" + `
data: /var/lib/netkeep
listen: 0.0.0.0:1280
advertise: controller.example.org:1280
admin:
  passwordFile: /run/secrets/admin
` + "```" + `

The file is named with ` + "`--config FILE`" + ` or in ` + "`" + config.FileEnv + "`" + `. A key without a value, or
a variable that is empty, is as good as none. Durations are written as ` + "`90s`" + `, ` + "`30m`" + `
or ` + "`1h30m`" + `, sizes as ` + "`64KiB`" + `, ` + "`1MiB`" + ` or a number of bytes. A list is a list in the
file, and has commas between its items elsewhere.

Nothing is guessed: an unknown key, a key that is given twice, and a value that is
not right keep a controller from starting. The error has the file, the line and the
key that is likely meant. A ` + "`NETKEEP_`" + ` variable that is no setting is warned about.

` + "```" + `
netkeep config check --config FILE   # tell what is wrong; exit code 0 or 1
netkeep config print --config FILE   # what a controller would run with, and why
` + "```" + `

Both take the flags and variables that ` + "`netkeep run`" + ` does. Secrets are not printed.
`

// reference writes the page on all settings.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	section := "-"
	c := config.Default()
	for s := range c.Settings() {
		above, _, below := strings.Cut(s.Key, ".")
		if !below {
			above = ""
		}
		if above != section {
			section = above
			title := "General"
			if above != "" {
				title = "`" + above + "`"
			}
			fmt.Fprintf(&b, "\n## %s\n", title)
		}
		kind, value := s.Kind(), "none"
		if s.Secret {
			kind += ", which is never shown"
		}
		if s.Default != "" {
			value = "`" + s.Default + "`"
		}
		flag := "`--" + s.Flag + "`"
		if s.Secret {
			flag = "none: others see the flags of a process"
		}
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n", s.Key, s.Doc)
		fmt.Fprintf(&b, "| type | default | environment | flag |\n|---|---|---|---|\n| %s | %s | `%s` | %s |\n", kind, value, s.Env, flag)
	}
	return b.String()
}

// TestReference fails when the page is not what the code says.
func TestReference(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "configuration.md")
	want := reference()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md is stale: run make golden")
	}
}

// TestReferenceExamples checks that files in the page can be used.
func TestReferenceExamples(t *testing.T) {
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(reference(), -1)
	if len(found) == 0 {
		t.Error("the page has no example")
	}
	for _, example := range found {
		if _, _, err := config.Load(config.Sources{File: write(t, example[1])}); err != nil {
			t.Error(err)
		}
	}
}
