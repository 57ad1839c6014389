package rest

import (
	"regexp"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/kind"
)

// FuzzIgnored shows that a header repeats nothing that could be anything but a
// name, whatever a client calls its members.
func FuzzIgnored(f *testing.F) {
	f.Add("roleAtributes", "roleAttributes", true)
	f.Add("a\r\nset-cookie: x=1", `";near="b`, false)
	f.Add(strings.Repeat("é", 1000), "", true)
	f.Add("\x00\xff\u2028", "\\", false)
	form := regexp.MustCompile(`^"[A-Za-z0-9_.?-]{0,100}"(;near="[A-Za-z0-9_.?-]{1,100}")?, "ok"(, \*)?$`)
	f.Fuzz(func(t *testing.T, name, near string, more bool) {
		got := ignoredList([]kind.Ignored{{Name: name, Near: near}, {Name: "ok"}}, more)
		if !form.MatchString(got) {
			t.Errorf("%q near %q is written as %q", name, near, got)
		}
	})
}
