package document

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// scan looks for what is too much in a text, without keeping any of it. It is
// rough, and on the side of what people write: it knows lines, brackets, quotes,
// comments and blocks of text.
func scan(from io.Reader) error {
	s := scanner{line: 1, last: '\n', before: '\n', block: none}
	s.begin()
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		for _, b := range chunk[:n] {
			s.next(b)
			s.before = b
			if s.excess != "" {
				return &Excess{s.at, s.excess}
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// none is the indentation of no block.
const none = -1

type scanner struct {
	line   int
	before byte // this one
	last   byte // that is no blank
	excess string
	at     int // the line of it

	// The line so far: its indentation, whether there is nothing else yet but
	// marks of lists, how many of those, and whether the last byte may be one.
	indent  int
	leading bool
	marks   int
	mark    bool

	depth   int // brackets that are open
	loose   int // those in texts too
	anchors int

	quote   byte // that is open, 0 if none is
	escaped bool
	comment bool
	header  bool // of a block: the next line begins it
	block   int  // the lines of a block are indented more than that
	inside  bool // the line is one of those

	length int // of the text so far
	begun  int // its line
}

// begin begins a line.
func (s *scanner) begin() {
	s.indent, s.leading, s.marks, s.mark = 0, true, 0, false
	s.comment, s.inside = false, false
	if s.quote == 0 {
		s.length, s.begun, s.last = 0, s.line, '\n'
	}
}

func (s *scanner) fail(line int, format string, args ...any) {
	if s.excess == "" {
		s.excess, s.at = fmt.Sprintf(format, args...), line
	}
}

func (s *scanner) next(b byte) {
	if b == '\n' {
		if s.header {
			s.header, s.block = false, s.indent
		}
		s.line++
		s.begin()
		return
	}
	if s.length++; s.length > maxText {
		s.fail(s.begun, "a text is longer than %d bytes", maxText)
	}
	switch {
	case s.quote != 0:
		s.quoted(b)
		return
	case s.leading && s.lead(b), s.inside:
		return
	case s.comment:
		s.length = 0
		return
	}
	switch {
	case b == ' ' || b == '\t' || b == '\r':
	case isPlain[b]:
		s.last, s.header = b, false
	default:
		s.content(b)
		s.last = b
	}
}

// isPlain are the bytes that mean nothing by themselves.
var isPlain = func() (plain [256]bool) {
	for b := range plain {
		plain[b] = strings.IndexByte("#\"'&[]{}|>,+-0123456789", byte(b)) < 0
	}
	return plain
}()

// quoted reads on in a text in quotes.
func (s *scanner) quoted(b byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.quote == '"' && b == '\\':
		s.escaped = true
	case b == s.quote:
		s.quote, s.last, s.leading = 0, b, false
	}
}

// lead reads the beginning of a line, and reports whether it goes on.
func (s *scanner) lead(b byte) bool {
	blank := b == ' ' || b == '\t' || b == '\r'
	if s.mark && blank {
		s.mark = false
		if s.marks++; s.marks > MaxDepth {
			s.deep()
		}
	}
	if blank {
		s.indent++
		return true
	}
	if s.block != none && s.indent > s.block && s.marks == 0 && !s.mark {
		s.leading, s.inside = false, true
		return true
	}
	s.block = none
	if s.indent > maxIndent {
		s.fail(s.line, "the line is indented by more than %d columns", maxIndent)
	}
	if s.mark = !s.mark && (b == '-' || b == '?'); s.mark {
		s.indent++
		return true
	}
	s.leading = false
	return false
}

// content reads what is not in quotes.
func (s *scanner) content(b byte) {
	begins := strings.IndexByte("\n:,[{", s.last) >= 0
	switch b {
	case '#':
		s.comment = strings.IndexByte(" \t\n", s.before) >= 0
		return // which may follow the header of a block
	case '"', '\'':
		if begins {
			s.quote = b
		}
	case '&':
		if begins {
			if s.anchors++; s.anchors > maxAnchors {
				s.fail(s.line, "more than %d values are marked with &; write some of them out, or make several files", maxAnchors)
			}
		}
	case '[', '{':
		if s.loose++; begins {
			s.depth++
		}
		if s.depth > MaxDepth || s.loose > 16*MaxDepth {
			s.deep()
		}
	case ']', '}':
		s.depth, s.loose = max(0, s.depth-1), max(0, s.loose-1)
	case '|', '>':
		s.header = begins && s.depth == 0
		return
	}
	if strings.IndexByte(",[]{}", b) >= 0 {
		s.length, s.begun = 0, s.line
	}
	if strings.IndexByte("+-0123456789", b) < 0 {
		s.header = false
	}
}

func (s *scanner) deep() {
	s.fail(s.line, tooDeep, MaxDepth)
}
