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
	for i, head := range t.Heads {
		text := pad(strings.ToUpper(head), widths[i], i == len(t.Heads)-1)
		b.WriteString(s.Strong(text))
		if i < len(t.Heads)-1 {
			b.WriteString(gap)
		}
	}
	b.WriteByte('\n')
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

// widths is how wide each column is.
func (s *Screen) widths(t Table) []int {
	widths := make([]int, len(t.Heads))
	for i, head := range t.Heads {
		widths[i] = utf8.RuneCountInString(head)
	}
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if s.Width == 0 {
		return widths
	}
	for {
		total := len(gap) * (len(widths) - 1)
		for _, w := range widths {
			total += w
		}
		widest := slices.Max(append([]int{0}, widths...))
		if total <= s.Width || widest <= least {
			return widths
		}
		over := total - s.Width
		i := slices.Index(widths, widest)
		second := least
		for j, w := range widths {
			if j != i {
				second = max(second, w)
			}
		}
		// It gives way as far as the next widest, then both do in turn.
		widths[i] = max(least, min(widest-1, max(second, widest-over)))
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
