package manifest

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// appendYAML adds a value as YAML, below something that is indented by depth
// steps. It writes one form for each value, so that equal networks are equal
// bytes.
func appendYAML(dst []byte, v *value, depth int) []byte {
	switch {
	case v.scalar.Kind() == '"':
		text, _ := v.text()
		return append(appendText(dst, text, depth), '\n')
	case v.scalar != nil:
		return append(append(dst, v.scalar...), '\n')
	case v.list && len(v.items) == 0:
		return append(dst, "[]\n"...)
	case v.list && isShort(v):
		return append(appendShort(dst, v), '\n')
	case v.list:
		for i, item := range v.items {
			if i > 0 {
				dst = indent(dst, depth)
			}
			dst = append(dst, "- "...)
			dst = appendYAML(dst, item, depth+1)
		}
		return dst
	case len(v.members) == 0:
		return append(dst, "{}\n"...)
	}
	for i, m := range v.members {
		if i > 0 {
			dst = indent(dst, depth)
		}
		dst = append(appendPlain(dst, m.name), ':')
		if m.value.isBlock() {
			dst = indent(append(dst, '\n'), depth+1)
		} else {
			dst = append(dst, ' ')
		}
		dst = appendYAML(dst, m.value, depth+1)
	}
	return dst
}

// isBlock reports whether a value begins on a line of its own.
func (v *value) isBlock() bool {
	return v.list && len(v.items) > 0 && !isShort(v) || v.isObject() && len(v.members) > 0
}

const step = "  "

func indent(dst []byte, depth int) []byte {
	for range depth {
		dst = append(dst, step...)
	}
	return dst
}

// isShort reports whether a list fits on a line: some words and numbers.
func isShort(v *value) bool {
	const width = 80
	n := 0
	for _, item := range v.items {
		if item.scalar == nil {
			return false
		}
		n += len(item.scalar) + 2
	}
	return n <= width
}

func appendShort(dst []byte, v *value) []byte {
	dst = append(dst, '[')
	for i, item := range v.items {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if text, ok := item.text(); ok {
			dst = appendPlain(dst, text)
		} else {
			dst = append(dst, item.scalar...)
		}
	}
	return append(dst, ']')
}

// appendText adds a text as a value of a member, in lines of its own if it has
// several.
func appendText(dst []byte, text string, depth int) []byte {
	if !isLines(text) {
		return appendPlain(dst, text)
	}
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
		if line == "" || line[0] == ' ' || strings.HasSuffix(line, " ") || !isPrintable(line) {
			return false
		}
	}
	return true
}

func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r == utf8.RuneError || r == '\ufeff' || r > unicode.MaxASCII && !unicode.IsPrint(r) || r < ' ' || r == 0x7f
	})
}

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
		case r < ' ' || r == 0x7f || r == '\ufeff' || r > unicode.MaxASCII && r <= 0xffff && !unicode.IsPrint(r):
			dst = append(dst, `\u`...)
			for shift := 12; shift >= 0; shift -= 4 {
				dst = append(dst, "0123456789abcdef"[r>>shift&15])
			}
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
