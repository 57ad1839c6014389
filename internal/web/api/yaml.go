package api

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// toYAML writes a JSON text as YAML, member for member. Libraries read YAML
// only to write it again, which takes many times as long.
func toYAML(text []byte) ([]byte, error) {
	y := yamlWriter{in: jsontext.NewDecoder(bytes.NewReader(text))}
	err := y.value(0, false)
	return y.out, err
}

type yamlWriter struct {
	in  *jsontext.Decoder
	out []byte
}

// value writes the next value after a key or dash. One that spans lines is
// indented by depth, and in a list its first line is that of the dash.
func (y *yamlWriter) value(depth int, inList bool) error {
	token, err := y.in.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case '{':
		return y.members(depth, inList)
	case '[':
		return y.items(depth)
	}
	y.out = append(append(append(y.out, ' '), scalar(token)...), '\n')
	return nil
}

func (y *yamlWriter) members(depth int, inList bool) error {
	for first := true; y.in.PeekKind() != '}'; first = false {
		switch {
		case first && inList:
			y.out = append(y.out, ' ')
		case first && depth > 0:
			y.out = append(y.out, '\n')
			fallthrough
		default:
			y.indent(depth)
		}
		key, err := y.in.ReadToken()
		if err != nil {
			return err
		}
		y.out = append(append(y.out, scalar(key)...), ':')
		if err := y.value(depth+1, false); err != nil {
			return err
		}
	}
	return y.end("{}")
}

func (y *yamlWriter) items(depth int) error {
	for first := true; y.in.PeekKind() != ']'; first = false {
		if first {
			y.out = append(y.out, '\n')
		}
		y.indent(depth)
		y.out = append(y.out, '-')
		if err := y.value(depth+1, true); err != nil {
			return err
		}
	}
	return y.end("[]")
}

// end reads the end of an object or list, and writes one that is empty.
func (y *yamlWriter) end(empty string) error {
	_, err := y.in.ReadToken()
	if bytes.HasSuffix(y.out, []byte{'\n'}) {
		return err
	}
	y.out = append(append(append(y.out, ' '), empty...), '\n')
	return err
}

func (y *yamlWriter) indent(depth int) {
	for range depth {
		y.out = append(y.out, "  "...)
	}
}

// plain are texts that need no quotes, unless they are words for something
// else.
var (
	plain    = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_./-]*$`)
	reserved = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
)

// scalar writes a text, number or boolean. A JSON text is one of YAML as well.
func scalar(token jsontext.Token) []byte {
	if token.Kind() != '"' {
		return []byte(token.String())
	}
	s := token.String()
	if plain.MatchString(s) && !slices.Contains(reserved, strings.ToLower(s)) {
		return []byte(s)
	}
	quoted, _ := jsontext.AppendQuote(nil, s)
	return quoted
}
