package rest

import (
	"strings"

	"netkeep.internal/internal/lang/kind"
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
	list, more := c.input.Ignored()
	for _, p := range c.parts {
		inside, andMore := p.body.Ignored()
		for _, i := range inside {
			if i.Name = p.at + "." + i.Name; i.Near != "" {
				i.Near = p.at + "." + i.Near
			}
			list = append(list, i)
		}
		if more = more || andMore || len(list) > kind.MostIgnored; len(list) > kind.MostIgnored {
			list = list[:kind.MostIgnored]
			break
		}
	}
	if len(list) > 0 {
		c.w.Header().Set(ignoredHeader, ignoredList(list, more))
	}
}

// part is a body inside of the request's.
type part struct {
	at   string
	body kind.Body
}

// Part reads a body inside of the request's, which has it at a path.
func (c *Call) Part(at string, raw []byte) (kind.Body, error) {
	body, err := kind.ReadBody(raw)
	if err == nil {
		c.parts = append(c.parts, part{at, body})
	}
	return body, err
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
