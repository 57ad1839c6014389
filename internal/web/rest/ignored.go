package rest

import (
	"strings"

	"netkeep/internal/lang/kind"
)

// ignoredHeader names the members of the request's body that the operation
// does not know: it goes on without them, since clients newer than this
// controller need that, but a tool can tell its user of a slip of the pen.
const ignoredHeader = "net-ignored"

// nameIgnored adds the header to an answer, if there is something to say.
func (c *Call) nameIgnored() {
	if c.input == nil {
		return
	}
	if list, more := c.input.Ignored(); len(list) > 0 {
		c.w.Header().Set(ignoredHeader, ignoredList(list, more))
	}
}

// ignoredList writes a list in the form of RFC 9651: names as strings, each
// with what it may stand for as the parameter near. A star at the end says that
// there were more.
func ignoredList(list []kind.Ignored, more bool) string {
	var items []string
	for _, i := range list {
		item := `"` + harmless(i.Name) + `"`
		if i.Near != "" {
			item += `;near="` + harmless(i.Near) + `"`
		}
		items = append(items, item)
	}
	if more {
		items = append(items, "*")
	}
	return strings.Join(items, ", ")
}

// longestName is how much of a name an answer repeats.
const longestName = 100

// harmless returns what of a client's text an answer may repeat in a header:
// the letters of names and paths, and not too many of them.
func harmless(name string) string {
	name = name[:min(len(name), longestName)]
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '?'
	}, name)
}
