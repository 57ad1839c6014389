// Package document reads YAML, and JSON with it, that may come from anybody: it
// refuses what is made to fill the memory or to take for ever before it does.
// The bounds of all documents are here; how large a file may be is for whoever
// reads it to say. It must not know what documents are about.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// The bounds of one document. People write them by hand or have them exported.
const (
	// MaxDepth is how many lists and objects may be in each other.
	MaxDepth = 64
	// maxIndent is how many columns a line may be indented.
	maxIndent = 512
	// maxText is how long one text may be.
	maxText = 1 << 20
	// maxAnchors is how many values may be marked for aliases, and maxAliased how
	// many values aliases may stand for in all: a small file is to stay small. The
	// parser's work grows with the square of the anchors.
	maxAnchors = 100
	maxAliased = 20_000
)

// tooDeep says that there is more than MaxDepth of it.
const tooDeep = "lists and objects are in each other more than %d times"

// Excess is what of a document is more than is read.
type Excess struct {
	Line   int // 0 if it is of no line
	Reason string
}

func (e *Excess) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// Read reads a file of at most max bytes. Of one that is too large, or has
// something in it that is, nothing is kept.
func Read(name string, max int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ReadFrom(file, max)
	}
	const small = 8 << 20 // is looked at when it has been read
	switch size := info.Size(); {
	case size > max:
		return nil, tooLarge(max)
	case size > small:
		if err := scan(file); err != nil {
			return nil, err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
	}
	text := make([]byte, info.Size())
	n, err := io.ReadFull(file, text)
	if errors.Is(err, io.ErrUnexpectedEOF) { // somebody made it shorter
		err = nil
	}
	return text[:n], err
}

// ReadFrom is Read of what is no file on disk.
func ReadFrom(from io.Reader, max int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, max+1))
	if err == nil && int64(len(text)) > max {
		err = tooLarge(max)
	}
	return text, err
}

func tooLarge(max int64) error {
	return &Excess{Reason: fmt.Sprintf("it has more than %d bytes, which is the most that is read", max)}
}

// Parse reads documents of which nothing is too much.
func Parse(text []byte, opts ...parser.Option) (*ast.File, error) {
	if err := scan(bytes.NewReader(text)); err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(text, 0, opts...)
	if err != nil {
		return nil, err
	}
	if bytes.IndexByte(text, '*') < 0 {
		return file, nil
	}
	w := weigher{tally: &tally{weights: map[string]int{}}}
	for _, doc := range file.Docs {
		ast.Walk(&w, doc)
	}
	if w.line > 0 {
		return nil, &Excess{w.line, fmt.Sprintf("aliases stand for more than %d values in all; write some of them out, or make several files", maxAliased)}
	}
	return file, nil
}

// Decode reads a document of which nothing is too much into a value.
func Decode(text []byte, into any, opts ...yaml.DecodeOption) error {
	if _, err := Parse(text); err != nil {
		return err
	}
	return yaml.UnmarshalWithOptions(text, into, opts...)
}

// Reason is what is wrong with a document, on one line and without the picture
// that comes with it.
func Reason(err error) string {
	text := err.Error()
	if shown, ok := errors.AsType[yaml.Error](err); ok {
		text = yaml.FormatError(shown, false, false)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// tally is what is known of aliases so far.
type tally struct {
	weights map[string]int // of what is marked, by its name
	aliased int            // values that aliases stand for
	line    int            // where that became too much, 0 if it did not
}

// weigher counts values, without putting any in the place of an alias.
type weigher struct {
	*tally
	values int
}

// Visit counts an alias as what it stands for, which was marked before.
func (w *weigher) Visit(n ast.Node) ast.Visitor {
	w.values++
	switch n := n.(type) {
	case *ast.AnchorNode:
		inner := weigher{tally: w.tally}
		ast.Walk(&inner, n.Value)
		w.weights[n.Name.String()] = inner.values
		w.values += inner.values
		return nil
	case *ast.AliasNode:
		weight := w.weights[n.Value.String()]
		w.values = min(w.values+weight, 1<<30)
		if w.aliased = min(w.aliased+weight, 1<<30); w.aliased > maxAliased && w.line == 0 {
			w.line = max(1, n.GetToken().Position.Line)
		}
		return nil
	}
	return w
}
