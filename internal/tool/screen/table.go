package screen

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Table is rows of texts under headings.
type Table struct {
	Heads []string
	Rows  [][]string
	// Paint, if set, colours a cell that has been brought to its width.
	Paint func(row, column int, text string) string
}

const gap = "  "

// least is how narrow a column may become to make room.
const least = 8

// Write lays the table out. On a terminal it fits the width: the widest
// columns give way. In a pipe nothing is cut off.
func (s *Screen) Write(t Table) error {
	return s.WriteTo(s.Out, t)
}

// WriteTo is Write to somewhere else that is as wide.
func (s *Screen) WriteTo(w io.Writer, t Table) error {
	widths := s.widths(t)
	var b strings.Builder
	for _, line := range heads(t.Heads, widths) {
		for i, head := range line {
			b.WriteString(s.Strong(pad(head, widths[i], i == len(t.Heads)-1)))
			if i < len(t.Heads)-1 {
				b.WriteString(gap)
			}
		}
		b.WriteByte('\n')
	}
	for r, row := range t.Rows {
		for i, cell := range row {
			text := pad(Plain(cell), widths[i], i == len(row)-1)
			if t.Paint != nil {
				text = t.Paint(r, i, text)
			}
			b.WriteString(text)
			if i < len(row)-1 {
				b.WriteString(gap)
			}
		}
		b.WriteByte('\n')
		if b.Len() > 1<<16 {
			if _, err := io.WriteString(w, b.String()); err != nil {
				return err
			}
			b.Reset()
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// heads are the headings, over several lines where their words have no room beside
// each other.
func heads(texts []string, widths []int) [][]string {
	lines := [][]string{make([]string, len(texts))}
	for i, text := range texts {
		at := 0
		for _, word := range strings.Fields(strings.ToUpper(text)) {
			if is := lines[at][i]; is != "" && utf8.RuneCountInString(is)+1+utf8.RuneCountInString(word) > widths[i] {
				if at++; at == len(lines) {
					lines = append(lines, make([]string, len(texts)))
				}
			}
			lines[at][i] = strings.TrimSpace(lines[at][i] + " " + word)
		}
	}
	return lines
}

// widths is how wide each column is.
func (s *Screen) widths(t Table) []int {
	cells, words, whole := make([]int, len(t.Heads)), make([]int, len(t.Heads)), make([]int, len(t.Heads))
	for _, row := range t.Rows {
		for i, cell := range row {
			cells[i] = max(cells[i], utf8.RuneCountInString(cell))
		}
	}
	for i, head := range t.Heads {
		whole[i] = max(cells[i], utf8.RuneCountInString(head))
		for word := range strings.FieldsSeq(head) {
			words[i] = max(words[i], utf8.RuneCountInString(word))
		}
	}
	if s.Width == 0 || across(whole) <= s.Width {
		return whole
	}
	// First headings take several lines, then what is below them gives way, and
	// only then are words of headings cut.
	widths := make([]int, len(t.Heads))
	for i := range widths {
		widths[i] = max(cells[i], words[i])
		words[i] = max(words[i], least)
	}
	narrow(widths, words, s.Width)
	narrow(widths, slices.Repeat([]int{least}, len(widths)), s.Width)
	return widths
}

// across is how wide columns are together.
func across(widths []int) int {
	total := len(gap) * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	return total
}

// narrow has the widest columns give way, each as far as it may, until all fit.
func narrow(widths, floors []int, width int) {
	for across(widths) > width {
		widest := -1
		for i, w := range widths {
			if w > floors[i] && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// pad brings a text to a width. The last of a row keeps its own.
func pad(text string, width int, last bool) string {
	n := utf8.RuneCountInString(text)
	switch {
	case n > width && width > 1:
		return string([]rune(text)[:width-1]) + "…"
	case last:
		return text
	}
	return text + strings.Repeat(" ", width-n)
}
