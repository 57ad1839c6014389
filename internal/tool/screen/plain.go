package screen

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Plain is a text without what would move the cursor or change colours: names
// are somebody else's.
func Plain(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// PlainLines is Plain for a text that has lines and columns.
func PlainLines(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if unprintable(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, text)
}

// EscapeJSON is JSON of lines in which every character that Plain would replace
// is written as an escape: it means the same and shows what it is. Outside of
// texts JSON has none.
func EscapeJSON(raw []byte) []byte {
	odd := func(r rune) bool { return unprintable(r) && r != '\n' }
	if !bytes.ContainsFunc(raw, odd) {
		return raw
	}
	var b bytes.Buffer
	for _, r := range string(raw) {
		switch {
		case !odd(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}
