// Package filter is the query language of list operations: which rows are
// wanted, in which order, and which page of them.
//
// A text is read by a hand-written lexer and parser into an untyped tree
// (Parse), and the tree is checked against the fields of a row type and turned
// into closures (Compile). The package owns the grammar, the meaning of every
// operator, the order of rows and the rules of paging; it owns no rows and no
// index, and only tells its callers which index could help.
//
// Binding is the one thing to know before reading: "and" and "or" have no
// precedence, each takes everything to its right, and so does "not". The text
//
//	not a and b or c
//
// means not (a and (b or c)). Brackets end what an operator takes.
//
// A text costs time and memory in proportion to its length, which is bounded,
// as are its nesting, its terms and its arrays.
//
// Of ours it imports packages fault and spell alone.
package filter

import (
	"fmt"
	"unicode/utf8"

	"netkeep.internal/internal/lang/fault"
)

// The bounds of a text. Beyond any of them it is refused.
const (
	MaxLength = 16 << 10 // bytes
	MaxDepth  = 64       // brackets, nots and sub queries around a term
	MaxTerms  = 500      // comparisons, constants and bare fields
	MaxItems  = 1000     // items of one array
)

// source is a text under examination and the code that its failures carry.
type source struct {
	text string
	code fault.Code
}

// errorAt says what is wrong at a byte offset. People count characters from
// one, so that is how the position is given.
func (s source) errorAt(at int, format string, args ...any) error {
	position := utf8.RuneCountInString(s.text[:at]) + 1
	return fault.New(s.code, fmt.Sprintf("position %d: ", position)+fmt.Sprintf(format, args...))
}

// checkLength refuses a text before any of it is read.
func (s source) checkLength() error {
	if len(s.text) > MaxLength {
		return fault.New(s.code, fmt.Sprintf("%d bytes are more than the %d allowed", len(s.text), MaxLength))
	}
	return nil
}
