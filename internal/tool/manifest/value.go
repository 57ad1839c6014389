package manifest

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"netkeep.internal/internal/lang/document"
)

// maxFile is how large one file may be, and maxValues how much may be in it: what
// is larger is a mistake. What else is too much, package document says.
const (
	maxFile   = 64 << 20
	maxValues = 4_000_000
)

// spot is where something is in a file.
type spot struct{ line, column int32 }

// value is a JSON value that knows where it was written.
type value struct {
	spot
	scalar  jsontext.Value // nil for objects and lists
	members []member       // of an object
	items   []*value       // of a list
	list    bool
}

// member is a member of an object.
type member struct {
	spot
	name  string
	value *value
}

// member returns the member with a name, nil if there is none.
func (v *value) member(name string) *value {
	if v == nil {
		return nil
	}
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// isObject reports whether the value has members.
func (v *value) isObject() bool { return v.scalar == nil && !v.list }

// isNull reports whether the value says nothing.
func (v *value) isNull() bool { return v.scalar.Kind() == 'n' }

// text returns the text that the value is.
func (v *value) text() (string, bool) {
	if v.scalar.Kind() != '"' {
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, v.scalar)
	return string(text), err == nil
}

// json is the value as a text.
func (v *value) json() jsontext.Value {
	if v.scalar != nil {
		return v.scalar
	}
	return v.appendJSON(nil)
}

// appendJSON adds the value.
func (v *value) appendJSON(dst []byte) []byte {
	switch {
	case v.scalar != nil:
		return append(dst, v.scalar...)
	case v.list:
		dst = append(dst, '[')
		for i, item := range v.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, m := range v.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(quote(dst, m.name), ':')
		dst = m.value.appendJSON(dst)
	}
	return append(dst, '}')
}

// quote adds a JSON string. What is not UTF-8 was refused before.
func quote(dst []byte, text string) []byte {
	dst, _ = jsontext.AppendQuote(dst, text)
	return dst
}

// find returns the value nearest to a dotted path: what is wrong with a member
// that is not there is wrong with what should have it.
func (v *value) find(path string) *value {
	for part := range strings.SplitSeq(path, ".") {
		next := v.member(part)
		if i, err := strconv.Atoi(part); next == nil && err == nil && i >= 0 && i < len(v.items) {
			next = v.items[i]
		}
		if next == nil {
			return v
		}
		v = next
	}
	return v
}

// parse reads a file, which may hold several documents. JSON is YAML too.
func parse(file string, text []byte) ([]*value, error) {
	parsed, err := document.Parse(text)
	if err != nil {
		return nil, broken(file, err)
	}
	var docs []*value
	r := reader{file: file, anchors: map[string]ast.Node{}}
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		v := r.value(doc.Body, 0)
		if r.mistake != nil {
			return nil, Mistakes{*r.mistake}
		}
		docs = append(docs, v)
	}
	return docs, nil
}

// broken says where a file is not YAML, or more than is read.
func broken(file string, err error) error {
	m := Mistake{File: file, Text: "this is not YAML"}
	if much, ok := errors.AsType[*document.Excess](err); ok {
		m.Line, m.Text = much.Line, much.Reason
	}
	if e, ok := errors.AsType[yaml.Error](err); ok {
		m.Text += ": " + e.GetMessage()
		if t := e.GetToken(); t != nil && t.Position != nil {
			m.Line, m.Column = t.Position.Line, t.Position.Column
		}
	}
	return Mistakes{m}
}

// reader turns nodes into values.
type reader struct {
	file    string
	anchors map[string]ast.Node
	values  int
	mistake *Mistake // the first
}

func (r *reader) fail(at spot, text string) *value {
	if r.mistake == nil {
		r.mistake = &Mistake{File: r.file, Line: int(at.line), Column: int(at.column), Text: text}
	}
	return &value{spot: at, scalar: jsontext.Value("null")}
}

func spotOf(n ast.Node) spot {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return spot{int32(t.Position.Line), int32(t.Position.Column)} // files are smaller than that
	}
	return spot{}
}

func (r *reader) value(n ast.Node, depth int) *value {
	at := spotOf(n)
	if r.mistake != nil {
		return r.fail(at, "")
	}
	if r.values++; r.values > maxValues || depth > document.MaxDepth {
		return r.fail(at, "there is too much in this file, or it is nested too deeply")
	}
	scalar := func(text string) *value { return &value{spot: at, scalar: jsontext.Value(text)} }
	switch n := n.(type) {
	case *ast.NullNode:
		return scalar("null")
	case *ast.BoolNode:
		return scalar(strconv.FormatBool(n.Value))
	case *ast.IntegerNode:
		return scalar(number(n.GetToken().Value, fmt.Sprint(n.Value)))
	case *ast.FloatNode:
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			return r.fail(at, "this number is out of range")
		}
		return scalar(number(n.GetToken().Value, strconv.FormatFloat(n.Value, 'g', -1, 64)))
	case *ast.StringNode:
		if n.Token.Type == token.StringType && jsonNumber.MatchString(n.Value) {
			return scalar(n.Value) // the parser does not know every number
		}
		return r.text(at, n.Value)
	case *ast.LiteralNode:
		return r.text(at, n.Value.Value)
	case *ast.MappingNode:
		return r.object(at, n.Values, depth)
	case *ast.MappingValueNode:
		return r.object(at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		v := &value{spot: at, list: true}
		for _, item := range n.Values {
			v.items = append(v.items, r.value(item, depth+1))
		}
		return v
	case *ast.AnchorNode:
		v := r.value(n.Value, depth+1)
		r.anchors[n.Name.String()] = n.Value // known from here on, so that it is not in itself
		return v
	case *ast.AliasNode:
		if target := r.anchors[n.Value.String()]; target != nil {
			return r.value(target, depth+1)
		}
		return r.fail(at, "nothing above is marked &"+n.Value.String())
	}
	return r.fail(at, fmt.Sprintf("%s is not understood here; write plain texts, numbers, lists and objects", strings.TrimSpace(n.GetToken().Value)))
}

func (r *reader) text(at spot, text string) *value {
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return r.fail(at, "this text is not UTF-8")
	}
	return &value{spot: at, scalar: quoted}
}

func (r *reader) object(at spot, pairs []*ast.MappingValueNode, depth int) *value {
	v := &value{spot: at}
	taken := map[string]bool{}
	for _, pair := range pairs {
		name, ok := keyOf(pair.Key)
		where := spotOf(pair.Key)
		switch {
		case !ok:
			return r.fail(where, "a name must be a text")
		case taken[name]:
			return r.fail(where, fmt.Sprintf("%q is there twice; write it once", name))
		}
		taken[name] = true
		v.members = append(v.members, member{where, name, r.value(pair.Value, depth+1)})
	}
	if len(v.members) > 0 {
		v.spot = v.members[0].spot
	}
	return v
}

// keyOf is the name of a member. One that looks like a number or a boolean is
// the text that it looks like.
func keyOf(n ast.MapKeyNode) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return n.GetToken().Value, true
	}
	return "", false
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// number is how a number was written if JSON would write it so too, and else
// what it means.
func number(written, meant string) string {
	if jsonNumber.MatchString(written) {
		return written
	}
	return meant
}
