package console

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
)

// apiDoc is the specification of an API, as it is served: what pages show of it.
type apiDoc struct {
	Info struct {
		Title string `json:"title"`
	} `json:"info"`
	Tags []struct {
		Name string `json:"name"`
		Doc  string `json:"description"`
	} `json:"tags"`
	Paths      map[string]map[string]*apiOp `json:"paths"`
	Components struct {
		Schemas map[string]*apiSchema `json:"schemas"`
	} `json:"components"`

	root string
	ops  map[string]*apiOp // by name
}

// apiOp is an operation.
type apiOp struct {
	Name   string     `json:"operationId"`
	Tags   []string   `json:"tags"`
	Doc    string     `json:"description"`
	Short  string     `json:"summary"`
	Params []apiParam `json:"parameters"`
	Body   struct {
		Content map[string]apiMedia `json:"content"`
	} `json:"requestBody"`
	Answers map[string]*apiAnswer `json:"responses"`

	method, path string
}

type apiParam struct {
	Name     string     `json:"name"`
	In       string     `json:"in"`
	Required bool       `json:"required"`
	Doc      string     `json:"description"`
	Schema   *apiSchema `json:"schema"`
}

type apiMedia struct {
	Schema *apiSchema `json:"schema"`
}

type apiAnswer struct {
	Content map[string]apiMedia `json:"content"`
}

type apiSchema struct {
	Ref      string                `json:"$ref"`
	Type     string                `json:"type"`
	Format   string                `json:"format"`
	Doc      string                `json:"description"`
	Members  map[string]*apiSchema `json:"properties"`
	Required []string              `json:"required"`
	Items    *apiSchema            `json:"items"`
	Enum     []any                 `json:"enum"`
	All      []*apiSchema          `json:"allOf"`
	Nullable bool                  `json:"nullable"`
}

// apiDocs are the specifications that were read. They do not change while a controller
// runs.
type apiDocs struct {
	mu     sync.Mutex
	byName map[string]*apiDoc
}

// apiNames are the APIs that pages tell of, as their addresses have them.
var apiNames = []string{"management", "fabric"}

// apiDoc reads the specification of an API; nil if there is no such API.
func (v *visit) apiDoc(name string) (*apiDoc, error) {
	root := map[string]string{"management": v.ManagementRoot, "fabric": v.FabricRoot}[name]
	if root == "" {
		return nil, nil
	}
	v.docs.mu.Lock()
	defer v.docs.mu.Unlock()
	if d := v.docs.byName[name]; d != nil {
		return d, nil
	}
	a, err := v.ask(request{method: http.MethodGet, path: root + "/swagger.json"})
	if err != nil {
		return nil, err
	}
	d := &apiDoc{root: root, ops: map[string]*apiOp{}}
	if err := a.read(d); err != nil {
		return nil, fmt.Errorf("console: the specification cannot be read: %w", err)
	}
	for path, methods := range d.Paths {
		for method, op := range methods {
			op.method, op.path = strings.ToUpper(method), path
			d.ops[op.Name] = op
		}
	}
	if v.docs.byName == nil {
		v.docs.byName = map[string]*apiDoc{}
	}
	v.docs.byName[name] = d
	return d, nil
}

// bodyMember is a member of a body or an answer, or a parameter.
type bodyMember struct {
	Name, Type, Doc string
	Required        bool
}

// The bounds of a table of members.
const (
	maxMembers = 200
	maxDeep    = 4
)

// resolve follows references by name.
func (d *apiDoc) resolve(s *apiSchema) *apiSchema {
	for range maxDeep {
		if s == nil || s.Ref == "" {
			break
		}
		s = d.Components.Schemas[s.Ref[strings.LastIndex(s.Ref, "/")+1:]]
	}
	return s
}

// members lists what a schema has in it, members of members below their own.
func (d *apiDoc) members(s *apiSchema) (rows []bodyMember) {
	d.collect(&rows, s, "", maxDeep)
	return rows
}

func (d *apiDoc) collect(rows *[]bodyMember, s *apiSchema, prefix string, deep int) {
	if s = d.resolve(s); s == nil || deep == 0 {
		return
	}
	for _, part := range s.All {
		d.collect(rows, part, prefix, deep-1)
	}
	for _, name := range s.inOrder() {
		if len(*rows) == maxMembers {
			return
		}
		member := s.Members[name]
		doc, actual := "", d.resolve(member)
		if actual == nil {
			continue
		}
		if doc = member.Doc; doc == "" {
			doc = actual.Doc
		}
		*rows = append(*rows, bodyMember{prefix + name, d.typeOf(member), doc, slices.Contains(s.Required, name)})
		switch {
		case actual.Type == "object" || len(actual.All) > 0:
			d.collect(rows, actual, prefix+name+".", deep-1)
		case actual.Type == "array":
			d.collect(rows, actual.Items, prefix+name+"[].", deep-1)
		}
	}
}

// inOrder are the names of members: what must be there first.
func (s *apiSchema) inOrder() []string {
	names := slices.Sorted(maps.Keys(s.Members))
	slices.SortStableFunc(names, func(a, b string) int {
		return boolRank(slices.Contains(s.Required, a)) - boolRank(slices.Contains(s.Required, b))
	})
	return names
}

func boolRank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// typeOf is a type in words.
func (d *apiDoc) typeOf(s *apiSchema) string {
	if s = d.resolve(s); s == nil {
		return ""
	}
	text := s.Type
	switch {
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprint(e)
		}
		text = strings.Join(words, " | ")
	case s.Type == "array":
		text = "list of " + d.typeOf(s.Items)
	case s.Format != "" && s.Format != "int64" && s.Format != "int32":
		text += ", " + s.Format
	}
	if s.Nullable {
		text += ", may be null"
	}
	return text
}

// bodyOf is the schema of a body, and its content type; nil if the operation has none.
func (op *apiOp) bodyOf() (typ string, s *apiSchema) {
	for _, typ := range slices.Sorted(maps.Keys(op.Body.Content)) {
		return typ, op.Body.Content[typ].Schema
	}
	return "", nil
}

// answersWith reports whether a good answer may be of a type.
func (op *apiOp) answersWith(typ string) bool {
	for status, a := range op.Answers {
		if _, ok := a.Content[typ]; ok && strings.HasPrefix(status, "2") {
			return true
		}
	}
	return false
}

// example is the least that a body needs, to begin with.
func (d *apiDoc) example(s *apiSchema, indent string) string {
	s = d.resolve(s)
	if s == nil {
		return ""
	}
	switch {
	case len(s.Enum) > 0:
		text, _ := json.Marshal(s.Enum[0])
		return string(text)
	case s.Type == "integer" || s.Type == "number":
		return "0"
	case s.Type == "boolean":
		return "false"
	case s.Type == "array":
		return "[]"
	case s.Type == "string":
		return `""`
	}
	if len(indent) > 2*maxDeep {
		return "{}"
	}
	var members []string
	for _, name := range s.inOrder() {
		if slices.Contains(s.Required, name) {
			quoted, _ := json.Marshal(name)
			members = append(members, indent+"  "+string(quoted)+": "+d.example(s.Members[name], indent+"  "))
		}
	}
	if len(members) == 0 {
		return "{}"
	}
	return "{\n" + strings.Join(members, ",\n") + "\n" + indent + "}"
}

// expanded is the path of an operation with values in the place of its parameters,
// and else the name of one that is missing or would lead elsewhere.
func (op *apiOp) expanded(values url.Values) (path string, missing string) {
	parts := strings.Split(op.path, "/")
	for i, part := range parts {
		name, isParam := strings.CutPrefix(part, "{")
		if !isParam {
			continue
		}
		name = strings.TrimSuffix(name, "}")
		value := values.Get(paramPrefix + name)
		if value == "" || value == "." || value == ".." || strings.Contains(value, "/") {
			return "", name
		}
		parts[i] = value
	}
	return strings.Join(parts, "/"), ""
}
