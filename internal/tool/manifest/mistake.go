package manifest

import (
	"fmt"
	"strings"
	"unicode"

	"netkeep.internal/internal/lang/spell"
)

// Mistake is something in a file that cannot be meant.
type Mistake struct {
	File         string
	Line, Column int // 0 if it is of none
	Text         string
}

// String is one line, whatever is in the file.
func (m Mistake) String() string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, m.Text)
	if m.Line == 0 {
		return m.File + ": " + text
	}
	if m.Column == 0 {
		return fmt.Sprintf("%s:%d: %s", m.File, m.Line, text)
	}
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, text)
}

// Mistakes are all that were found, in the order of the files.
type Mistakes []Mistake

// Error has one line for each mistake.
func (ms Mistakes) Error() string {
	lines := make([]string, len(ms))
	for i, m := range ms {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// asError is nil if there are none.
func (ms Mistakes) asError() error {
	if len(ms) == 0 {
		return nil
	}
	return ms
}

// meant names what a misspelt word may stand for, with a blank before it; nothing
// if there is nothing like it.
func meant(word string, known []string) string {
	near := spell.Near(word, known)
	if len(near) == 0 {
		return ""
	}
	for i, name := range near {
		near[i] = fmt.Sprintf("%q", name)
	}
	return "; did you mean " + strings.Join(near, " or ") + "?"
}

// article puts one before a noun.
func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
