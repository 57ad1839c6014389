package screen

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestProgress shows people how far something has come, once it counts as
// long, and pipes nothing.
func TestProgress(t *testing.T) {
	for _, tells := range []bool{true, false} {
		var out bytes.Buffer
		at := time.Unix(0, 0)
		s := &Screen{Err: &out, Tells: tells}
		p := s.Progress("Reading services", 0, func() time.Time { return at })
		p.Set(10, 100) // at once
		if out.Len() > 0 {
			t.Errorf("it shows %q before anything takes long", out.String())
		}
		at = at.Add(patience)
		p.Set(50, 100)
		p.Set(60, 100) // before another picture is due
		at = at.Add(pace)
		p.Add(15)
		p.End()
		want := ""
		if tells {
			want = "\r\x1b[KReading services [============            ] 50 of 100" +
				"\r\x1b[KReading services [==================      ] 75 of 100\r\x1b[K"
		}
		if out.String() != want {
			t.Errorf("with somebody there %t it shows %q, want %q", tells, out.String(), want)
		}
	}
}

// TestTableFits lays tables of any texts out: on a terminal no line is wider
// than that, as far as columns can give way, and a pipe gets everything.
func TestTableFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 6).Draw(t, "columns")
		cell := rapid.StringOfN(rapid.RuneFrom([]rune("abc ä…\x1b")), 0, 60, -1)
		table := Table{Heads: make([]string, columns)}
		for i := range table.Heads {
			table.Heads[i] = rapid.StringMatching(`[a-z]{1,12}`).Draw(t, "head")
		}
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			row := make([]string, columns)
			for i := range row {
				row[i] = cell.Draw(t, "cell")
			}
			table.Rows = append(table.Rows, row)
		}
		width := rapid.IntRange(0, 120).Draw(t, "width")
		var out bytes.Buffer
		s := &Screen{Out: &out, Width: width}
		if err := s.Write(table); err != nil {
			t.Fatal(err)
		}
		bound := max(width, columns*(least+len(gap)))
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != len(table.Rows)+1 {
			t.Fatalf("%d lines for %d rows", len(lines), len(table.Rows))
		}
		for _, line := range lines {
			if width > 0 && utf8.RuneCountInString(line) > bound {
				t.Errorf("a line has %d columns of %d: %q", utf8.RuneCountInString(line), bound, line)
			}
			if strings.ContainsRune(line, '\x1b') {
				t.Errorf("what a cell holds moves the cursor: %q", line)
			}
		}
		if width == 0 {
			for i, row := range table.Rows {
				for _, text := range row {
					if !strings.Contains(lines[i+1], Plain(text)) {
						t.Errorf("the pipe lacks %q in %q", text, lines[i+1])
					}
				}
			}
		}
	})
}

// TestQR draws a code whose corners are those of every code.
func TestQR(t *testing.T) {
	text, err := QR("hello")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 10 || !strings.Contains(lines[1], "█▀▀▀▀▀█") {
		t.Errorf("that is no code:\n%s", text)
	}
	if _, err := QR(strings.Repeat("x", 5000)); err == nil {
		t.Error("more than a code can hold is drawn")
	}
}

// TestFlow breaks texts between words, so that no line is wider than the screen
// unless a word is, and loses nothing.
func TestFlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.StringMatching(`[a-zä]{1,12}`), 0, 30).Draw(t, "words"), " ")
		indent, width := rapid.IntRange(0, 20).Draw(t, "indent"), rapid.IntRange(0, 90).Draw(t, "width")
		got := Flow(text, indent, width)
		if strings.Join(strings.Fields(got), " ") != text {
			t.Fatalf("%q became %q", text, got)
		}
		for i, line := range strings.Split(got, "\n") {
			n := utf8.RuneCountInString(line)
			if i == 0 {
				n += indent
			}
			if width > 0 && n > width && len(strings.Fields(line)) > 1 {
				t.Errorf("a line has %d columns of %d: %q", n, width, line)
			}
			if i > 0 && !strings.HasPrefix(line, strings.Repeat(" ", indent)) {
				t.Errorf("a line does not begin below the first: %q", line)
			}
		}
	})
}

// TestHeads has headings take several lines before anything is cut.
func TestHeads(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{Out: &out, Width: 42}
	err := s.Write(Table{Heads: []string{"name", "edge router connection", "disabled"}, Rows: [][]string{{"somebody with a name", "no", "no"}}})
	if err != nil || strings.Contains(out.String(), "…") {
		t.Errorf("%v: it shows\n%s", err, out.String())
	}
	for _, word := range []string{"NAME", "EDGE", "ROUTER", "CONNECTION", "DISABLED"} {
		if !strings.Contains(out.String(), word) {
			t.Errorf("it lacks %s:\n%s", word, out.String())
		}
	}
}
