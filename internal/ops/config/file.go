package config

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/lang/spell"
)

const (
	// maxFile is how large a file may be.
	maxFile = 64 << 10
	// maxMistakes is how many mistakes of a file are told.
	maxMistakes = 10
)

// readFile takes settings from a file and notes in from where they stood.
func readFile(settings iter.Seq[Setting], name string, from Origins) error {
	text, err := document.Read(name, maxFile)
	if much := new(document.Excess); errors.As(err, &much) {
		return fmt.Errorf("config file %s: is larger than %s", name, Size(maxFile))
	}
	if err != nil {
		return fmt.Errorf("config file: %w", err)
	}
	return readText(settings, name, text, from)
}

// readText is readFile of a file that was read already.
func readText(settings iter.Seq[Setting], name string, text []byte, from Origins) error {
	r := &reader{file: name, settings: map[string]Setting{}, lines: map[string]int{}, from: from}
	for s := range settings {
		if section, _, ok := strings.Cut(s.Key, "."); ok && !slices.Contains(r.names, section) {
			r.names = append(r.names, section)
		}
		r.names = append(r.names, s.Key)
		r.settings[s.Key] = s
	}
	docs, err := r.parse(string(text))
	if err != nil {
		return err
	}
	for i, doc := range docs {
		if i > 0 {
			r.fail(lineOf(doc.Body), "holds a second document; settings are one")
			break
		}
		r.section("", doc.Body, lineOf(doc.Body))
	}
	return errors.Join(r.errs...)
}

// reader takes the settings out of a document.
type reader struct {
	file     string
	settings map[string]Setting
	names    []string       // of settings and sections
	lines    map[string]int // where each name was
	from     Origins
	errs     []error
}

func (r *reader) fail(line int, format string, args ...any) {
	switch n := len(r.errs); {
	case n < maxMistakes:
		r.errs = append(r.errs, r.mistake(line, format, args...))
	case n == maxMistakes:
		r.errs = append(r.errs, fmt.Errorf("config file %s: has more mistakes", r.file))
	}
}

func (r *reader) mistake(line int, format string, args ...any) error {
	return fmt.Errorf("config file %s:%d: %w", r.file, line, fmt.Errorf(format, args...))
}

// parse returns the documents of a text that are not empty. Duplicate keys
// are let through: we know better what to say of them.
func (r *reader) parse(text string) ([]*ast.DocumentNode, error) {
	f, err := document.Parse([]byte(text), parser.AllowDuplicateMapKey())
	if much, ok := errors.AsType[*document.Excess](err); ok {
		return nil, r.mistake(max(1, much.Line), "%s", much.Reason)
	}
	if e, ok := errors.AsType[yaml.Error](err); ok && e.GetToken() != nil {
		return nil, r.mistake(e.GetToken().Position.Line, "is no YAML: %s", e.GetMessage())
	}
	if err != nil {
		return nil, r.mistake(1, "is no YAML: %w", err)
	}
	return slices.DeleteFunc(f.Docs, func(doc *ast.DocumentNode) bool { return doc.Body == nil }), nil
}

// section reads the keys below a section; the whole file is the one without a
// name.
func (r *reader) section(name string, node ast.Node, line int) {
	switch n := node.(type) {
	case *ast.NullNode:
	case *ast.MappingNode:
		for _, pair := range n.Values {
			r.pair(name, pair)
		}
	case *ast.MappingValueNode:
		r.pair(name, n)
	default:
		if name == "" {
			r.fail(line, "must hold keys with values, such as data: %s, not %s", r.settings["data"].Example(), describe(node))
			return
		}
		r.fail(line, "%s must hold keys of its own, such as %s, not %s", name, r.below(name), describe(node))
	}
}

// below returns a name that is below a section.
func (r *reader) below(section string) string {
	return r.names[slices.IndexFunc(r.names, func(name string) bool { return strings.HasPrefix(name, section+".") })]
}

// pair reads one key with its value.
func (r *reader) pair(section string, pair *ast.MappingValueNode) {
	if len(r.errs) > maxMistakes {
		return
	}
	line, name := lineOf(pair.Key), textOf(pair.Key)
	if section != "" {
		name = section + "." + name
	}
	s, setting := r.settings[name]
	switch first, again := r.lines[name]; {
	case !setting && !slices.Contains(r.names, name) || section == "" && strings.Contains(name, "."):
		r.unknown(line, section, name)
		return
	case again:
		r.fail(line, "%s is given twice; the first is on line %d", name, first)
		return
	}
	r.lines[name] = line
	if !setting {
		r.section(name, pair.Value, line)
		return
	}
	if _, none := pair.Value.(*ast.NullNode); none {
		return
	}
	if err := set(s, pair.Value); err != nil {
		r.fail(line, "%w", err)
		return
	}
	r.from[s.Key] = fmt.Sprintf("%s:%d", r.file, line)
}

// unknown reports a key that is none, with the one that may be meant: one of
// the same name in another section, or else the nearest.
func (r *reader) unknown(line int, section, name string) {
	if _, ok := r.settings[name]; ok && section == "" {
		above, key, _ := strings.Cut(name, ".")
		r.fail(line, "unknown key %q; write %s below %s", name, key, above)
		return
	}
	nearest := spell.Nearest(name, r.names)
	if len(spell.Near(name, []string{nearest})) == 0 {
		leaf := name[strings.LastIndexByte(name, '.')+1:]
		if i := slices.IndexFunc(r.names, func(other string) bool { return strings.HasSuffix(other, "."+leaf) }); i >= 0 {
			nearest = r.names[i]
		}
	}
	r.fail(line, "unknown key %q; the nearest known is %s", excerpt(name), nearest)
}

// set gives a setting the value that a node holds.
func set(s Setting, node ast.Node) error {
	if text, ok := scalar(node); ok {
		return s.Set(text)
	}
	if p, ok := s.value.Addr().Interface().(*[]Webhook); ok {
		return setWebhooks(s, p, node)
	}
	items, ok := node.(*ast.SequenceNode)
	p, list := s.value.Addr().Interface().(*[]string)
	if !ok || !list {
		return s.not(describe(node))
	}
	var texts []string
	for _, item := range items.Values {
		text, ok := scalar(item)
		if !ok {
			return s.not("a list with " + describe(item))
		}
		texts = append(texts, text)
	}
	before := *p
	*p = texts
	err := s.check()
	if err != nil {
		*p = before
	}
	return err
}

// setWebhooks is set for a list of webhooks.
func setWebhooks(s Setting, p *[]Webhook, node ast.Node) error {
	all, err := webhooksOf(node)
	if err != nil {
		return fmt.Errorf("%s %w", s.Key, err)
	}
	before := *p
	*p = all
	if err = s.check(); err != nil {
		*p = before
	}
	return err
}

// scalar returns a plain value as it is written: what it means is for the
// setting to say.
func scalar(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return textOf(n), true
	}
	return "", false
}

// describe says what a node is, without what it holds: that may be a secret.
func describe(node ast.Node) string {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys with values"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tag"
	case *ast.NullNode:
		return "nothing"
	}
	return "a plain value"
}

// textOf returns the text of a key.
func textOf(node ast.Node) string {
	if s, ok := node.(*ast.StringNode); ok {
		return s.Value
	}
	if t := node.GetToken(); t != nil {
		return t.Value
	}
	return ""
}

func lineOf(node ast.Node) int {
	if t := node.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}
