// Package screen is how commands talk to people and to pipes: tables that fit
// the terminal, colour that never says anything alone, progress, questions
// and QR codes. It imports nothing of ours.
package screen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"
)

// Screen is the three streams of a command, and what is at their ends.
type Screen struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Reads, Shows and Tells say whether a person is at In, Out and Err.
	Reads, Shows, Tells bool
	// Color says whether Out may be coloured.
	Color bool
	// Width is how many columns Out has; 0 for no bound.
	Width int

	lines *bufio.Reader
}

// New looks at the streams and at the variables that people set.
func New(in io.Reader, out, err io.Writer, getenv func(string) string) *Screen {
	s := &Screen{In: in, Out: out, Err: err, Reads: terminal(in), Shows: terminal(out), Tells: terminal(err)}
	s.Color = s.Shows && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	if s.Shows {
		s.Width = width(out, getenv("COLUMNS"))
	}
	return s
}

// terminal reports whether a person is at a stream.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

const usualWidth = 80

func width(out io.Writer, columns string) int {
	if n, err := strconv.Atoi(columns); err == nil && n > 0 {
		return n
	}
	if f, ok := out.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return usualWidth
}

// Printf writes to people and pipes alike.
func (s *Screen) Printf(format string, args ...any) { fmt.Fprintf(s.Out, format, args...) }

// Notef writes beside the output: what a pipe must not see.
func (s *Screen) Notef(format string, args ...any) { fmt.Fprintf(s.Err, format+"\n", args...) }

// The colours of words. Each word says the same without them.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
	dim    = "2"
	bold   = "1"
)

// Good, Bad, Odd, Faint and Strong colour a text.
func (s *Screen) Good(text string) string   { return s.paint(green, text) }
func (s *Screen) Bad(text string) string    { return s.paint(red, text) }
func (s *Screen) Odd(text string) string    { return s.paint(yellow, text) }
func (s *Screen) Faint(text string) string  { return s.paint(dim, text) }
func (s *Screen) Strong(text string) string { return s.paint(bold, text) }

func (s *Screen) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// ErrNobody says that a question found nobody to answer it.
var ErrNobody = errors.New("there is nobody to ask: standard input is not a terminal")

// Ask returns a line that somebody types.
func (s *Screen) Ask(question string) (string, error) {
	if !s.Reads {
		return "", ErrNobody
	}
	fmt.Fprint(s.Err, question)
	if s.lines == nil {
		s.lines = bufio.NewReader(s.In)
	}
	line, err := s.lines.ReadString('\n')
	if err != nil && line == "" {
		return "", unanswered(err)
	}
	return strings.TrimSpace(line), nil
}

// ErrSilent says that somebody was asked and did not answer.
var ErrSilent = errors.New("no answer was given; nothing was done")

// unanswered says why there is no answer.
func unanswered(err error) error {
	if errors.Is(err, io.EOF) { // which is what Ctrl-C and Ctrl-D come to
		return ErrSilent
	}
	return fmt.Errorf("no answer: %w", err)
}

// ErrAhead says that lines wait which cannot be the answer to what was not asked
// yet: somebody has pasted several commands, and the next one is no answer.
var ErrAhead = errors.New("more lines were typed or pasted before the question was asked, and none of them is taken for the answer; nothing was done")

// Confirm asks for a yes; everything else is a no.
func (s *Screen) Confirm(question string) (bool, error) {
	if f, ok := s.In.(*os.File); ok && s.Reads && s.lines == nil && pending(f) {
		return false, ErrAhead
	}
	answer, err := s.Ask(question + " [y/N] ")
	if err != nil {
		return false, err
	}
	switch strings.ToLower(answer) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// Secret returns a line that somebody types without seeing it.
func (s *Screen) Secret(question string) (string, error) {
	f, ok := s.In.(*os.File)
	if !s.Reads || !ok {
		return "", ErrNobody
	}
	// Nothing is shown from before the question on: people paste.
	was, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return "", fmt.Errorf("no answer: %w", err)
	}
	defer func() { _ = term.Restore(int(f.Fd()), was) }()
	line, err := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, s.Err}, "").ReadPassword(question)
	if err != nil {
		return "", unanswered(err)
	}
	return line, nil
}
