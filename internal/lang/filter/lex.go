package filter

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// tokenKind says what a token is. Keywords are kinds of their own.
type tokenKind uint8

const (
	endOfText tokenKind = iota
	fieldName
	stringLiteral
	numberLiteral
	timeLiteral
	equal
	notEqual
	less
	lessEqual
	greater
	greaterEqual
	openBracket
	closeBracket
	openArray
	closeArray
	comma

	wordAllOf
	wordAnd
	wordAnyOf
	wordAsc
	wordBetween
	wordBy
	wordContains
	wordCount
	wordDesc
	wordFalse
	wordFrom
	wordIContains
	wordIn
	wordIsEmpty
	wordLimit
	wordNone
	wordNot
	wordNull
	wordOr
	wordSkip
	wordSort
	wordTrue
	wordWhere
)

// keywords are the reserved words in lower case. No field of such a name can
// be addressed.
var keywords = map[string]tokenKind{
	"allof":     wordAllOf,
	"and":       wordAnd,
	"anyof":     wordAnyOf,
	"asc":       wordAsc,
	"between":   wordBetween,
	"by":        wordBy,
	"contains":  wordContains,
	"count":     wordCount,
	"desc":      wordDesc,
	"false":     wordFalse,
	"from":      wordFrom,
	"icontains": wordIContains,
	"in":        wordIn,
	"isempty":   wordIsEmpty,
	"limit":     wordLimit,
	"none":      wordNone,
	"not":       wordNot,
	"null":      wordNull,
	"or":        wordOr,
	"skip":      wordSkip,
	"sort":      wordSort,
	"true":      wordTrue,
	"where":     wordWhere,
}

// keyword returns the kind of a reserved word in any case, fieldName if the
// word is not reserved.
func keyword(word string) tokenKind {
	const longest = len("icontains")
	if len(word) > longest {
		return fieldName
	}
	var lower [longest]byte
	for i := range len(word) {
		lower[i] = lowerASCII(word[i])
	}
	if kind, ok := keywords[string(lower[:len(word)])]; ok {
		return kind
	}
	return fieldName
}

// token is a unit of the text.
type token struct {
	kind  tokenKind
	at    int // offset of its first byte
	end   int // offset after its last byte
	gap   int // white space characters before it
	value Value
}

// lexer cuts a text into tokens, one at a time, and never looks back.
type lexer struct {
	source
	pos int
}

// next returns the next token.
func (l *lexer) next() (token, error) {
	start := l.pos
	l.skipSpace()
	t := token{at: l.pos, gap: l.pos - start}
	if l.pos == len(l.text) {
		t.end = l.pos
		return t, nil
	}
	var err error
	switch c := l.text[l.pos]; {
	case isLetter(c):
		err = l.word(&t)
	case c == '"':
		err = l.string(&t)
	case c == '-' || isDigit(c):
		err = l.number(&t)
	default:
		err = l.symbol(&t)
	}
	t.end = l.pos
	return t, err
}

func (l *lexer) skipSpace() {
	for l.pos < len(l.text) && isSpace(l.text[l.pos]) {
		l.pos++
	}
}

// peek returns the byte at the current position, zero at the end.
func (l *lexer) peek() byte {
	if l.pos < len(l.text) {
		return l.text[l.pos]
	}
	return 0
}

// symbol reads an operator or a bracket.
func (l *lexer) symbol(t *token) error {
	c := l.text[l.pos]
	l.pos++
	orEqual := l.peek() == '='
	switch {
	case c == '(':
		t.kind = openBracket
	case c == ')':
		t.kind = closeBracket
	case c == '[':
		t.kind = openArray
	case c == ']':
		t.kind = closeArray
	case c == ',':
		t.kind = comma
	case c == '=':
		t.kind = equal
		return nil
	case c == '!' && orEqual:
		t.kind = notEqual
	case c == '<' && orEqual:
		t.kind = lessEqual
	case c == '<':
		t.kind = less
	case c == '>' && orEqual:
		t.kind = greaterEqual
	case c == '>':
		t.kind = greater
	default:
		return l.errorAt(t.at, "%s is not part of the language", l.character(t.at))
	}
	if orEqual && (c == '!' || c == '<' || c == '>') {
		l.pos++
	}
	return nil
}

// character shows the character at an offset.
func (l *lexer) character(at int) string {
	r, size := utf8.DecodeRuneInString(l.text[at:])
	if r == utf8.RuneError && size == 1 {
		return fmt.Sprintf("byte 0x%02x", l.text[at])
	}
	return strconv.QuoteRune(r)
}

// word reads a field name, a keyword or a datetime. Segments after the first
// dot name the keys of maps, and may hold digits and dashes.
func (l *lexer) word(t *token) error {
	for isLetter(l.peek()) || l.peek() == '_' {
		l.pos++
	}
	switch c := l.peek(); {
	case isDigit(c) || c == '-':
		return l.errorAt(l.pos, "%q cannot be in a field name before the first dot", c)
	case c != '.':
		word := l.text[t.at:l.pos]
		if word == "datetime" && c == '(' {
			return l.time(t)
		}
		t.kind = keyword(word)
		return nil
	}
	t.kind = fieldName
	for l.peek() == '.' {
		l.pos++
		if c := l.peek(); !isLetter(c) && !isDigit(c) && c != '_' {
			return l.errorAt(l.pos, "expected a letter, a digit or '_' after the dot of a field name")
		}
		for c := l.peek(); isLetter(c) || isDigit(c) || c == '_' || c == '-'; c = l.peek() {
			l.pos++
		}
	}
	return nil
}

// time reads what follows the word datetime.
func (l *lexer) time(t *token) error {
	l.pos++
	l.skipSpace()
	start := l.pos
	for c := l.peek(); isDigit(c) || strings.IndexByte("TtZz:+-.", c) >= 0; c = l.peek() {
		l.pos++
	}
	text := l.text[start:l.pos]
	instant, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	if err != nil || text[len("2006-01-02T15")] != ':' { // Parse takes an hour of one digit
		return l.errorAt(start, "expected a date and time as in 2006-01-02T15:04:05Z, found %s", excerpt(text))
	}
	instant = instant.UTC()
	if year := instant.Year(); year < 0 || year > 9999 {
		return l.errorAt(start, "year %d is out of range", year)
	}
	l.skipSpace()
	if l.peek() != ')' {
		return l.errorAt(l.pos, "expected \")\" after a date and time")
	}
	l.pos++
	t.kind, t.value = timeLiteral, TimeValue(instant)
	return nil
}

// string reads a quoted text.
func (l *lexer) string(t *token) error {
	l.pos++
	var unescaped []byte // the text so far, once it differs from the source
	start := l.pos
	for {
		if l.pos == len(l.text) {
			return l.errorAt(t.at, "the string has no end")
		}
		switch c := l.text[l.pos]; {
		case c == '"':
			t.kind, t.value = stringLiteral, StringValue(l.text[start:l.pos])
			if unescaped != nil {
				t.value.text = string(append(unescaped, l.text[start:l.pos]...))
			}
			l.pos++
			return nil
		case c == '\\':
			plain, ok := unescape(l.text[l.pos:])
			if !ok {
				return l.errorAt(l.pos, "a string may escape only \" \\ f n r t")
			}
			unescaped = append(append(unescaped, l.text[start:l.pos]...), plain)
			l.pos += 2
			start = l.pos
		case c < ' ':
			return l.errorAt(l.pos, "control character %s in a string", l.character(l.pos))
		default:
			r, size := utf8.DecodeRuneInString(l.text[l.pos:])
			if r == utf8.RuneError && size == 1 {
				return l.errorAt(l.pos, "%s in a string is not UTF-8", l.character(l.pos))
			}
			l.pos += size
		}
	}
}

// unescape returns the character that the escape at the start of s stands for.
func unescape(s string) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	i := strings.IndexByte(`"\fnrt`, s[1])
	if i < 0 {
		return 0, false
	}
	return "\"\\\f\n\r\t"[i], true
}

// number reads an integer or a floating-point number.
func (l *lexer) number(t *token) error {
	if l.peek() == '-' {
		l.pos++
	}
	if err := l.integer(); err != nil {
		return err
	}
	whole := true
	if l.peek() == '.' {
		whole = false
		l.pos++
		if !isDigit(l.peek()) {
			return l.errorAt(l.pos, "expected a digit after the decimal point")
		}
		l.digits()
	}
	if c := l.peek(); c == 'e' || c == 'E' {
		whole = false
		l.pos++
		if c := l.peek(); c == '+' || c == '-' {
			l.pos++
		}
		if err := l.integer(); err != nil {
			return err
		}
	}
	t.kind = numberLiteral
	text := l.text[t.at:l.pos]
	if whole {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return l.errorAt(t.at, "%s does not fit in 64 bits", excerpt(text))
		}
		t.value = IntValue(i)
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return l.errorAt(t.at, "%s is too large", excerpt(text))
	}
	t.value = FloatValue(f)
	return nil
}

// integer reads digits without a leading zero.
func (l *lexer) integer() error {
	start := l.pos
	l.digits()
	switch n := l.pos - start; {
	case n == 0:
		return l.errorAt(l.pos, "expected a digit")
	case n > 1 && l.text[start] == '0':
		return l.errorAt(start, "a number cannot have leading zeros")
	}
	return nil
}

func (l *lexer) digits() {
	for isDigit(l.peek()) {
		l.pos++
	}
}

func isSpace(c byte) bool  { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// excerpt quotes a piece of the text, cut to a length fit for a message.
func excerpt(s string) string {
	const most = 40
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "..."
	}
	return strconv.Quote(s)
}
