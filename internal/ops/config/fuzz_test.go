package config

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// FuzzFile reads anything as a file: it is refused with the file's name, or
// its settings are right and printing them loses nothing.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"", "data: x\n", "---\ndata: x\n---\nlisten: y\n", "log:\n  level: debug\n  format: json\n", "log: {level: warn}\n",
		"store:\n  endpoints:\n    - a\n    - b\n", "store: {endpoints: [a, b]}\n", "limits:\n  body: 2MiB\n  logins: 7\n",
		"session:\n  timeout: 1h30m\n", "egress:\n  strict: true\n", "a: &x {b: *x}\n", "<<: *x\n", "? x\n: y\n", "data: |\n  x\n",
		"data: !!binary x\n", "%YAML 1.2\n---\ndata: x\n", "data: \"\\ud800\"\n", "[[[[[[", "{{{{{{", "- - - -", "\xff\xfe", "data: 'x\n", "\t",
		"data: x # comment\n", "&a", "*a", "!", "!!", "? ?", ": :", "data:\n  - *a\n", "data: >\n", "\"\": x", "log: &a\n  level: info\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > maxFile {
			return
		}
		c, from := Default(), Origins{}
		if err := readText(c.Settings(), "netkeep.yaml", text, from); err != nil {
			if !strings.HasPrefix(err.Error(), "config file netkeep.yaml:") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		for s := range c.Settings() {
			if err := s.check(); err != nil {
				t.Errorf("a wrong value was taken: %v", err)
			}
		}
		var out bytes.Buffer
		if err := c.Print(&out, from); err != nil {
			t.Fatal(err)
		}
		again, fromPrinted := Default(), Origins{}
		again.Admin.Password = c.Admin.Password // which is not printed
		if err := readText(again.Settings(), "printed", out.Bytes(), fromPrinted); err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("printed as\n%s\nand read as %+v (%v), want %+v", out.String(), again, err, c)
		}
		for _, key := range slices.Sorted(maps.Keys(from)) {
			if !strings.HasPrefix(from[key], "netkeep.yaml:") {
				t.Errorf("%s comes from %q", key, from[key])
			}
		}
	})
}
