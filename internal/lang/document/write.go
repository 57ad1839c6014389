package document

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// YAML is JSON as YAML for people, member for member; see AppendYAML.
func YAML(text jsontext.Value) ([]byte, error) { return AppendYAML(nil, text, 0) }

// AppendYAML adds JSON as YAML, below something that is indented by depth steps.
// It writes one form for each value, so that equal values are equal bytes, and
// nothing in it that would act on a terminal. What could not be read again for
// its depth is not written. Libraries take many times as long.
func AppendYAML(dst []byte, text jsontext.Value, depth int) ([]byte, error) {
	w := writer{text: text, in: decoder(text), out: dst}
	err := w.value(depth, false)
	return w.out, err
}

// Step is by how much what is in something is indented.
const Step = "  "

type writer struct {
	text []byte
	in   *jsontext.Decoder
	out  []byte
}

// decoder reads JSON from memory. Whether it is good is for others to say.
func decoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// value writes the next value, which is a member's or stands where the line has
// come to.
func (w *writer) value(depth int, member bool) error {
	kind := w.in.PeekKind()
	if kind != '{' && kind != '[' {
		return w.scalar(depth, member)
	}
	if _, err := w.in.ReadToken(); err != nil {
		return err
	}
	if depth > MaxDepth {
		return &Excess{Reason: fmt.Sprintf(tooDeep, MaxDepth)}
	}
	end := kind + 2 // as the characters are
	if w.in.PeekKind() != end && (kind == '{' || !w.short()) {
		return w.block(kind, depth, member)
	}
	w.blank(member)
	w.out = append(w.out, byte(kind))
	for first := true; w.in.PeekKind() != end; first = false {
		if !first {
			w.out = append(w.out, ", "...)
		}
		item, err := w.in.ReadValue()
		if err != nil {
			return err
		}
		if w.out, err = appendScalar(w.out, item); err != nil {
			return err
		}
	}
	w.out = append(w.out, byte(end), '\n')
	_, err := w.in.ReadToken()
	return err
}

// block writes the members of an object or the items of a list, of which there
// are some, each on lines of its own.
func (w *writer) block(kind jsontext.Kind, depth int, member bool) error {
	if member {
		w.out = indent(append(w.out, '\n'), depth)
	}
	for first := true; w.in.PeekKind() != kind+2; first = false {
		if !first {
			w.out = indent(w.out, depth)
		}
		if kind == '[' {
			w.out = append(w.out, "- "...)
		} else {
			name, err := w.in.ReadToken()
			if err != nil {
				return err
			}
			w.out = append(appendPlain(w.out, name.String()), ':')
		}
		if err := w.value(depth+1, kind == '{'); err != nil {
			return err
		}
	}
	_, err := w.in.ReadToken()
	return err
}

// blank divides a member's name from its value.
func (w *writer) blank(member bool) {
	if member {
		w.out = append(w.out, ' ')
	}
}

// scalar writes a value that is no object or list.
func (w *writer) scalar(depth int, member bool) error {
	raw, err := w.in.ReadValue()
	if err != nil {
		return err
	}
	w.blank(member)
	if text, _ := jsontext.AppendUnquote(nil, raw); raw.Kind() == '"' && depth > 0 && isLines(string(text)) {
		w.out = appendLines(w.out, string(text), depth)
	} else if w.out, err = appendScalar(w.out, raw); err != nil {
		return err
	}
	w.out = append(w.out, '\n')
	return nil
}

// short reports whether the list that has just begun fits on a line: some words
// and numbers. It looks no further than that takes.
func (w *writer) short() bool {
	const width = 80
	ahead := decoder(w.text[w.in.InputOffset()-1:])
	_, err := ahead.ReadToken()
	for n := 0; err == nil && n <= width; {
		switch ahead.PeekKind() {
		case ']':
			return true
		case '{', '[':
			return false
		}
		var item jsontext.Value
		item, err = ahead.ReadValue()
		n += len(item) + 2
	}
	return false
}

func indent(dst []byte, depth int) []byte {
	for range depth {
		dst = append(dst, Step...)
	}
	return dst
}

// appendScalar adds a text, number or word on one line.
func appendScalar(dst []byte, raw jsontext.Value) ([]byte, error) {
	if raw.Kind() != '"' {
		return append(dst, raw...), nil
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	return appendPlain(dst, string(text)), err
}

// appendLines adds a text of several lines as such.
func appendLines(dst []byte, text string, depth int) []byte {
	dst = append(dst, '|')
	body, ended := strings.CutSuffix(text, "\n")
	if !ended {
		dst = append(dst, '-')
	}
	for line := range strings.SplitSeq(body, "\n") {
		dst = append(dst, '\n')
		dst = append(indent(dst, depth), line...)
	}
	return dst
}

// isLines reports whether a text has several lines that are safe to write as
// they are.
func isLines(text string) bool {
	if !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
		return false
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" || line[0] == ' ' || strings.HasSuffix(line, " ") || strings.ContainsFunc(line, unseen) {
			return false
		}
	}
	return utf8.ValidString(text)
}

// unseen reports whether a character cannot be seen, or acts on what shows it.
func unseen(r rune) bool { return r == utf8.RuneError || r == '\ufeff' || !unicode.IsPrint(r) }

// plain are texts that need no quotes anywhere: they look like nothing else.
// The words of YAML 1.1 and 1.2 that mean something are not among them.
var (
	plain    = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./+@-]*( [A-Za-z0-9_./+@-]+)*$`)
	reserved = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

// appendPlain adds a text on one line.
func appendPlain(dst []byte, text string) []byte {
	if len(text) < 200 && plain.MatchString(text) && !slices.Contains(reserved, strings.ToLower(text)) {
		return append(dst, text...)
	}
	return appendQuoted(dst, text)
}

// appendQuoted adds a text in quotes, with whatever nobody sees written out.
func appendQuoted(dst []byte, text string) []byte {
	dst = append(dst, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case r != utf8.RuneError && unseen(r) && r <= 0xffff:
			dst = appendHex(append(dst, `\u`...), r, 4)
		case r != utf8.RuneError && unseen(r):
			dst = appendHex(append(dst, `\U`...), r, 8)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}

// appendHex adds a character's number.
func appendHex(dst []byte, r rune, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[r>>shift&15])
	}
	return dst
}
