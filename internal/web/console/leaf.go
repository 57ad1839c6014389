package console

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
)

// leaf is a field that has an input of its own: everything but structs, whose members
// have theirs.
type leaf struct {
	path   string // of members, with dots between them
	field  *kind.Field
	within []string // paths of the structs around it that may be unset
}

// leavesOf lists the leaves of fields in their order.
func leavesOf(fields []*kind.Field, prefix string) []leaf { return leavesWithin(fields, prefix, nil) }

func leavesWithin(fields []*kind.Field, prefix string, within []string) (all []leaf) {
	for _, f := range fields {
		path := prefix + f.Last()
		if f.Form != kind.Struct {
			all = append(all, leaf{path, f, within})
			continue
		}
		around := within
		if f.Optional() {
			around = append(slices.Clone(within), path)
		}
		all = append(all, leavesWithin(f.Members, path+".", around)...)
	}
	return all
}

// values are what inputs hold, by the path of their leaf. The number of entries in a
// list of structs is under its path with rowsSuffix, and whether a struct is there that
// may be unset under its path with givenSuffix.
type values map[string]string

const (
	rowsSuffix  = ".#"
	givenSuffix = "?"
)

// decide is the path of the field that says whether a leaf exists, and the word that
// it must hold; both are empty if it always does.
func (l leaf) decide() (path, word string) {
	if l.field.When == "" {
		return "", ""
	}
	name, word, _ := strings.Cut(l.field.When, ":")
	return strings.TrimSuffix(l.path, l.field.Last()) + name, word
}

// exists reports whether the variant that was chosen has the leaf.
func (l leaf) exists(in values) bool {
	for _, around := range l.within {
		if in[around+givenSuffix] == "" {
			return false
		}
	}
	path, word := l.decide()
	return path == "" || in[path] == word
}

// errEmpty says that an input holds nothing.
var errEmpty = errors.New("is empty")

// read is what an input stands for in a body. The error is for people.
func (l leaf) read(in values) (any, error) {
	text := in[l.path]
	if l.field.Form == kind.Structs {
		return l.readRows(in)
	}
	if l.field.Form == kind.Bool {
		return text == "true", nil
	}
	if l.field.Form != kind.Text {
		text = strings.TrimSpace(text)
	}
	if text == "" {
		return nil, errEmpty
	}
	switch l.field.Form {
	case kind.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errors.New("must be a whole number")
		}
		return n, nil
	case kind.Texts:
		return lines(text), nil
	case kind.Map:
		return l.readMap(text)
	case kind.Marks:
		return readMarks(text)
	case kind.JSON:
		raw := jsontext.Value(text)
		if !raw.IsValid() || raw.Kind() != '{' {
			return nil, errors.New("must be a JSON object")
		}
		return raw, nil
	case kind.Time:
		return readTime(text)
	}
	return text, nil // also bytes, which are base64
}

// readTime reads a moment: as answers write it, or as browsers do, which is taken for
// UTC.
func readTime(text string) (any, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Format(time.RFC3339), nil
		}
	}
	return nil, errors.New("must be a moment such as 2026-01-31 12:00, in UTC")
}

// lines are the texts of a list, one a line.
func lines(text string) []string {
	list := []string{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}

// pairs are lines with a colon between name and value, which is the last: names may
// hold colons.
func pairs(text string, each func(name, value string) error) error {
	for _, line := range lines(text) {
		i := strings.LastIndex(line, ": ")
		if i <= 0 {
			return fmt.Errorf("has a line without a colon and a blank between name and value: %s", shortened(line, 40))
		}
		if err := each(strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+2:])); err != nil {
			return err
		}
	}
	return nil
}

func (l leaf) readMap(text string) (any, error) {
	m := map[string]any{}
	err := pairs(text, func(name, value string) error {
		switch l.field.Element() {
		case kind.Int:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return fmt.Errorf("needs a whole number for %s", name)
			}
			m[name] = n
		case kind.Bool:
			m[name] = value == "true"
		default:
			m[name] = value
		}
		return nil
	})
	return m, err
}

// readMarks reads tags: true, false and null are what they say, and a text in quotes is
// the text within.
func readMarks(text string) (any, error) {
	m := map[string]any{}
	err := pairs(text, func(name, value string) error {
		m[name] = value
		var v any
		if value == "true" || value == "false" || value == "null" || strings.HasPrefix(value, `"`) {
			if json.Unmarshal([]byte(value), &v) != nil {
				return fmt.Errorf("has a text for %s that lacks its second quote", name)
			}
			m[name] = v
		}
		return nil
	})
	return m, err
}

// readRows reads a list of structs. Entries in which nothing was typed are none.
func (l leaf) readRows(in values) (any, error) {
	list := []any{}
	for i := range rowsIn(in, l.path) {
		row, any, err := map[string]any{}, false, error(nil)
		for _, m := range leavesOf(l.field.Members, fmt.Sprintf("%s.%d.", l.path, i)) {
			v, failed := m.read(in)
			switch {
			case errors.Is(failed, errEmpty):
				if m.field.Form == kind.Texts {
					row[m.field.Last()] = []string{}
				}
				continue
			case failed != nil:
				err = fmt.Errorf("entry %d: %s %w", i+1, m.field.Last(), failed)
			}
			row[m.field.Last()] = v
			any = any || v != false
		}
		if err != nil {
			return nil, err
		}
		if any {
			list = append(list, row)
		}
	}
	if len(list) == 0 {
		return nil, errEmpty
	}
	return list, nil
}

// maxRows is how many entries of a list a form has.
const maxRows = 200

// rowsIn is how many entries of a list of structs inputs hold.
func rowsIn(in values, path string) int {
	n, _ := strconv.Atoi(in[path+rowsSuffix])
	return max(0, min(n, maxRows))
}

// canon is what an input stands for, as one text for each meaning.
func (l leaf) canon(in values) string {
	if !l.exists(in) {
		return ""
	}
	v, err := l.read(in)
	switch {
	case errors.Is(err, errEmpty):
		return ""
	case err != nil:
		return "!" + in[l.path]
	}
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return "!" + in[l.path]
	}
	raw := jsontext.Value(text)
	_ = raw.Canonicalize()
	return string(raw)
}

// written is what inputs hold for a record, with names in the place of ids.
func written(fields []*kind.Field, prefix string, rec members, names map[string]string, into values) values {
	for _, f := range fields {
		path, raw := prefix+f.Last(), rec[f.Shown()]
		if raw == nil || raw.Kind() == 'n' || f.Secret {
			continue
		}
		switch f.Form {
		case kind.Struct:
			var inner members
			if json.Unmarshal(raw, &inner) == nil {
				into[path+givenSuffix] = "true"
				written(f.Members, path+".", inner, names, into)
			}
		case kind.Structs:
			var rows []members
			_ = json.Unmarshal(raw, &rows)
			into[path+rowsSuffix] = strconv.Itoa(len(rows))
			for i, row := range rows {
				written(f.Members, fmt.Sprintf("%s.%d.", path, i), row, names, into)
			}
		default:
			into[path] = text(f, rec, raw, names)
		}
	}
	return into
}

// text is what the input of a field holds for a value.
func text(f *kind.Field, rec members, raw jsontext.Value, names map[string]string) string {
	name := func(id string) string {
		if n := names[id]; n != "" && len(f.Targets()) > 0 {
			return n
		}
		return id
	}
	var one string
	var list []string
	switch f.Form {
	case kind.Text:
		if f.As != "" && len(f.Enum) == 0 {
			var ref members
			if json.Unmarshal(rec[f.As], &ref) == nil && ref.text("name") != "" {
				return ref.text("name")
			}
		}
		_ = json.Unmarshal(raw, &one)
		return name(one)
	case kind.Time, kind.Bytes:
		_ = json.Unmarshal(raw, &one)
		return one
	case kind.Bool:
		if raw.Kind() == 't' {
			return "true"
		}
		return ""
	case kind.Texts:
		_ = json.Unmarshal(raw, &list)
		if f.Roles != "" {
			list = roleNames(rec[f.Shown()+"Display"], list)
		}
		for i := range list {
			list[i] = name(list[i])
		}
		return strings.Join(list, "\n")
	case kind.Map, kind.Marks:
		return textOfMap(raw, name)
	case kind.JSON:
		raw = raw.Clone()
		if string(raw) == "{}" {
			return ""
		}
		_ = raw.Indent(jsontext.WithIndent("  "))
	}
	return string(raw)
}

// roleNames are roles with names in the place of ids.
func roleNames(display jsontext.Value, list []string) []string {
	var shown []members
	if json.Unmarshal(display, &shown) != nil || len(shown) != len(list) {
		return list
	}
	named := make([]string, len(shown))
	for i, m := range shown {
		if named[i] = m.text("name"); strings.HasPrefix(m.text("role"), "@") && !strings.HasPrefix(named[i], "@") {
			named[i] = "@" + named[i]
		}
	}
	return named
}

// textOfMap is a map as lines.
func textOfMap(raw jsontext.Value, name func(string) string) string {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return ""
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := fmt.Sprint(m[key])
		switch v := m[key].(type) {
		case nil:
			value = "null"
		case string:
			if v == "" || v == "true" || v == "false" || v == "null" || strings.HasPrefix(v, `"`) || strings.ContainsAny(v, "\r\n") || strings.TrimSpace(v) != v || strings.Contains(v, ": ") {
				quoted, _ := json.Marshal(v)
				value = string(quoted)
			}
		}
		b.WriteString(name(key) + ": " + value + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// isBase64 reports whether a text can be bytes.
func isBase64(text string) bool {
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil
}
