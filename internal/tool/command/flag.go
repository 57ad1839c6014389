package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/lang/document"
	"netkeep.internal/internal/lang/kind"
)

// setting is a flag that sets one field of a body.
type setting struct {
	field *kind.Field
	path  []string // of members
	flag  string
	given []string
	value any // what was given, as a body has it
	env   Env
}

// settings gives a command a flag for every field that bodies of a shape may
// set, except for the name, which is an argument.
func settings(cmd *cobra.Command, env Env, n noun, shape kind.Shape) []*setting {
	var all []*setting
	add(cmd, env, &all, n.Fields, nil, shape)
	return all
}

func add(cmd *cobra.Command, env Env, all *[]*setting, fields []*kind.Field, path []string, shape kind.Shape) {
	for _, f := range fields {
		at := append(slices.Clone(path), f.Last())
		switch {
		case !f.Taken(shape) || f.Name == "name" && shape == kind.Create:
		case f.Form == kind.Struct:
			add(cmd, env, all, f.Members, at, shape)
		default:
			s := &setting{field: f, path: at, flag: flagName(f, at), env: env}
			s.register(cmd)
			*all = append(*all, s)
		}
	}
}

// flagName is what the flag of a field is called.
func flagName(f *kind.Field, path []string) string {
	if f.Attributes {
		return "roles"
	}
	words := make([]string, len(path))
	for i, p := range path {
		words[i] = kind.Dashed(p)
	}
	name := strings.Join(words, "-")
	if f.Ref != "" && f.Form == kind.Text {
		name = strings.TrimSuffix(name, "-id")
	}
	return name
}

func (s *setting) register(cmd *cobra.Command) {
	flag := cmd.Flags().VarPF(s, s.flag, "", s.help())
	if s.field.Form == kind.Bool {
		flag.NoOptDefVal = "true"
	}
	if words := s.words(); words != nil {
		_ = cmd.RegisterFlagCompletionFunc(s.flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	if target := s.field.Ref; target != "" {
		if n, err := named(target); err == nil {
			_ = cmd.RegisterFlagCompletionFunc(s.flag, completeNames(s.env, n))
		}
	}
}

// help is the field's sentence, with the words that it may have.
func (s *setting) help() string {
	doc := strings.ReplaceAll(s.field.Doc, "`", "'")
	if s.field.Ref != "" || s.field.Roles != "" {
		doc = strings.NewReplacer("Ids of", "Names or ids of", "Id of", "Name or id of").Replace(doc)
	}
	if len(s.field.Enum) > 0 && s.field.Form != kind.Map {
		doc += " One of " + strings.Join(s.field.Enum, ", ") + "."
	}
	if s.field.Usual != "" {
		doc += " Usually " + s.field.Usual + "."
	}
	return doc
}

func (s *setting) words() []string {
	if s.field.Form == kind.Bool {
		return []string{"true", "false"}
	}
	return s.field.Enum
}

// Set, String and Type make it a flag.
func (s *setting) Set(text string) (err error) {
	s.given = append(s.given, text)
	s.value, err = s.read()
	return err
}

func (s *setting) String() string { return "" }

func (s *setting) Type() string {
	switch s.field.Form {
	case kind.Bool:
		return "bool"
	case kind.Int:
		return "N"
	case kind.Time:
		return "TIME"
	case kind.Texts:
		return "LIST"
	case kind.Map, kind.Marks:
		return "KEY=VALUE"
	case kind.JSON, kind.Structs:
		return "JSON|@FILE"
	}
	if s.file() {
		return "TEXT|@FILE"
	}
	return "TEXT"
}

// file reports whether the field is a text that people have in a file.
func (s *setting) file() bool { return strings.HasSuffix(s.field.Name, "Pem") }

// read understands what was given.
func (s *setting) read() (any, error) {
	last := s.given[len(s.given)-1]
	switch s.field.Form {
	case kind.Bool:
		b, err := strconv.ParseBool(last)
		if err != nil {
			return nil, fmt.Errorf("must be true or false")
		}
		return b, nil
	case kind.Int:
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be a whole number")
		}
		return n, nil
	case kind.Texts:
		return s.list(s.given), nil
	case kind.Map, kind.Marks:
		return s.pairs()
	case kind.JSON, kind.Structs:
		return s.document(last)
	}
	if name, ok := strings.CutPrefix(last, "@"); ok && s.file() {
		data, err := readFile(s.env, name, maxDocument)
		return string(data), err
	}
	return last, nil
}

// list is texts that are given one by one or with commas between them.
func (s *setting) list(given []string) []string {
	list := []string{}
	for _, text := range given {
		for item := range strings.SplitSeq(text, ",") {
			item = strings.TrimSpace(item)
			if s.field.Attributes {
				item = strings.TrimPrefix(item, "#")
			}
			if item != "" {
				list = append(list, item)
			}
		}
	}
	return list
}

// pairs are names and values.
func (s *setting) pairs() (map[string]any, error) {
	pairs := map[string]any{}
	for _, text := range s.given {
		for item := range strings.SplitSeq(text, ",") {
			if item == "" {
				continue
			}
			name, value, ok := strings.Cut(item, "=")
			if !ok {
				return nil, fmt.Errorf("must look like name=value, and %q does not", item)
			}
			v, err := s.scalar(value)
			if err != nil {
				return nil, fmt.Errorf("%s %w", name, err)
			}
			pairs[name] = v
		}
	}
	return pairs, nil
}

// scalar is a value of a map.
func (s *setting) scalar(text string) (any, error) {
	form := kind.Text
	if s.field.Form == kind.Map {
		form = s.field.Element()
	}
	switch {
	case form == kind.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("must be a whole number")
		}
		return n, nil
	case form == kind.Bool || s.field.Form == kind.Marks && (text == "true" || text == "false"):
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("must be true or false")
		}
		return b, nil
	case s.field.Form == kind.Marks && text == "null":
		return nil, nil
	}
	return text, nil
}

// document is JSON or YAML, or a file with it.
func (s *setting) document(text string) (any, error) {
	data := []byte(text)
	if name, ok := strings.CutPrefix(text, "@"); ok {
		var err error
		if data, err = readFile(s.env, name, maxDocument); err != nil {
			return nil, err
		}
	}
	var v any
	if err := document.Decode(data, &v); err != nil {
		return nil, unreadable("is neither JSON nor YAML: ", err)
	}
	return v, nil
}

// unreadable says why a document was not read; before is said unless there is
// just too much of it.
func unreadable(before string, err error) error {
	if much, ok := errors.AsType[*document.Excess](err); ok {
		return much
	}
	return errors.New(before + document.Reason(err))
}

// maxDocument is more than a body may have.
const maxDocument = 16 << 20

// readFile reads a file of at most max bytes, - for standard input.
func readFile(env Env, name string, max int64) ([]byte, error) {
	from := env.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		from = f
	}
	data, err := io.ReadAll(io.LimitReader(from, max+1))
	if err == nil && int64(len(data)) > max {
		err = fmt.Errorf("%s is larger than %d bytes", name, max)
	}
	return data, err
}

// put sets a member of a body.
func put(body map[string]any, path []string, v any) error {
	for _, name := range path[:len(path)-1] {
		inner, ok := body[name].(map[string]any)
		if !ok {
			if body[name] != nil {
				return fmt.Errorf("%s must be an object", name)
			}
			inner = map[string]any{}
			body[name] = inner
		}
		body = inner
	}
	body[path[len(path)-1]] = v
	return nil
}
