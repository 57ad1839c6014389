package screen

import (
	"strings"
	"unicode/utf8"
)

// Flow breaks a text between words where the screen ends, and begins further
// lines below its own beginning, which is that many columns in. In a pipe it
// stays one line.
func (s *Screen) Flow(text string, indent int) string { return Flow(text, indent, s.Width) }

// Flow is that of a screen so many columns wide; 0 for no bound.
func Flow(text string, indent, width int) string {
	if width == 0 || indent+utf8.RuneCountInString(text) <= width {
		return text
	}
	var b strings.Builder
	at := indent
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > width && at > indent:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}
