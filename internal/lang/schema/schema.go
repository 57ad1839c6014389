// Package schema judges config data: it compiles the JSON schema of a config
// type, tells whether data satisfies it and where it does not, and holds the
// schemas of the built-in config types. Schemas come from callers, so nothing
// in one makes the program fetch, read a file, loop or grow without bound. Of
// ours it imports only fault.
package schema

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"netkeep.internal/internal/lang/fault"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxSize bounds a schema document in bytes of compact JSON.
	maxSize = 64 << 10
	// maxValues bounds the objects, arrays and scalars of a schema document.
	// Compiling takes time that grows with the square of its subschemas.
	maxValues = 4096
	// generation bounds each of the two generations of a Compiler's cache.
	generation = 32
)

// location is the name under which the library knows the document. It has no
// host and no path on disk, so a relative reference leads nowhere.
const location = "config:///schema"

// Schema is a compiled schema. It never changes, and may be used by several
// goroutines at once. The zero Schema accepts any object.
type Schema struct {
	root   *jsonschema.Schema // nil accepts any object
	titles map[string]string  // of the subschemas, by location
	meter  *meter
}

// Compiler compiles schemas and remembers the recent ones, so that a write
// of config data does not compile its schema again. The zero Compiler is ready
// for use by several goroutines at once.
type Compiler struct {
	mu         sync.Mutex
	young, old map[[sha256.Size]byte]*Schema
}

// Compile compiles a schema whose root type must be object, or returns an equal
// one that was compiled recently. A nil or empty schema accepts any object.
// Without $schema it is read as draft 7. All references must stay within the
// document; patterns are those of package regexp; formats are asserted in every
// draft. Errors are of the named field.
func (c *Compiler) Compile(field string, schema map[string]any) (*Schema, error) {
	doc, text, err := read(field, schema)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(text)
	if s := c.recall(digest); s != nil {
		return s, nil
	}
	// Two goroutines may do the same work here; the later result stays.
	s, err := compile(field, doc)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(digest, s)
	return s, nil
}

// recall returns the remembered schema, or nil, and renews its youth.
func (c *Compiler) recall(digest [sha256.Size]byte) *Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.young[digest]; s != nil {
		return s
	}
	s := c.old[digest]
	if s != nil {
		c.keep(digest, s)
	}
	return s
}

// keep remembers s. When the young generation is full it becomes the old one,
// which forgets what nobody asked for in the meantime. The caller holds mu.
func (c *Compiler) keep(digest [sha256.Size]byte, s *Schema) {
	if c.young == nil || len(c.young) >= generation {
		c.old, c.young = c.young, make(map[[sha256.Size]byte]*Schema, generation)
	}
	c.young[digest] = s
}

// read returns a private copy of a schema document and its canonical text,
// or an error when it exceeds a bound or is not that of an object.
func read(field string, schema map[string]any) (doc map[string]any, text []byte, err error) {
	if len(schema) == 0 {
		return nil, nil, nil
	}
	c := copier{values: maxValues}
	copied, err := c.copy(schema, maxDepth)
	if err != nil {
		return nil, nil, fault.Invalid(field, err.Error(), nil)
	}
	text, err = json.Marshal(copied)
	if err != nil {
		return nil, nil, fault.Invalid(field, "must be JSON", nil)
	}
	if len(text) > maxSize {
		return nil, nil, fault.Invalid(field, fmt.Sprintf("must have at most %d bytes", maxSize), len(text))
	}
	doc = copied.(map[string]any)
	if uri, ok := doc["$schema"].(string); ok && !knownDraft(uri) {
		return nil, nil, fault.Invalid(field, fmt.Sprintf("has an unknown $schema %q: use draft 4, 6, 7, 2019-09 or 2020-12", shorten(uri)), shorten(uri))
	}
	if doc["type"] != "object" {
		return nil, nil, fault.Invalid(field, `must have the root type "object"`, render(doc["type"]))
	}
	return doc, text, nil
}

// knownDraft reports whether the $schema names a draft, by either scheme.
func knownDraft(uri string) bool {
	bare := func(uri string) string {
		_, rest, _ := strings.Cut(strings.TrimSuffix(uri, "#"), "://")
		return rest
	}
	known := []string{"http://json-schema.org/schema"} // the latest one
	for _, d := range []*jsonschema.Draft{
		jsonschema.Draft4, jsonschema.Draft6, jsonschema.Draft7, jsonschema.Draft2019, jsonschema.Draft2020,
	} {
		known = append(known, d.String())
	}
	return slices.ContainsFunc(known, func(k string) bool { return bare(k) == bare(uri) })
}

// compile compiles a document that read has let pass.
func compile(field string, doc map[string]any) (*Schema, error) {
	if doc == nil {
		return &Schema{}, nil
	}
	// The first compilation checks the document against its draft. The second
	// meters it, for which the library wants a vocabulary; with one it checks
	// nested schemas of draft 2019-09 only in part.
	if _, err := newLibrary(doc).Compile(location); err != nil {
		return nil, fault.Invalid(field, whyNot(doc, err), nil)
	}
	var parts []*jsonschema.Schema
	metered := newLibrary(doc)
	metered.AssertVocabs()
	metered.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: location + "/parts",
		Compile: func(ctx *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
			parts = append(parts, ctx.Enqueue(nil))
			return nil, nil
		},
	})
	root, err := metered.Compile(location)
	if err != nil {
		return nil, fault.Invalid(field, whyNot(doc, err), nil)
	}
	s := &Schema{root: root, titles: make(map[string]string), meter: newMeter(parts)}
	for _, part := range parts {
		if part.Title != "" {
			s.titles[part.Location] = part.Title
		}
		checkNames(part)
	}
	return s, nil
}

// newLibrary returns a compiler of the library that knows the one document
// and can load no other. The drafts' own documents are part of the library.
func newLibrary(doc map[string]any) *jsonschema.Compiler {
	lib := jsonschema.NewCompiler()
	lib.UseLoader(sealed{})
	lib.UseRegexpEngine(compilePattern)
	lib.DefaultDraft(jsonschema.Draft7)
	lib.AssertFormat()
	for name, check := range formats() {
		lib.RegisterFormat(&jsonschema.Format{Name: name, Validate: check})
	}
	if err := lib.AddResource(location, doc); err != nil {
		panic(err) // only for a location that is malformed or taken
	}
	return lib
}

// sealed is a loader that loads nothing.
type sealed struct{}

func (sealed) Load(string) (any, error) {
	return nil, errors.New("schemas load no other documents")
}

// whyNot says why the library refused a schema document.
func whyNot(doc map[string]any, err error) string {
	var outside *jsonschema.LoadURLError
	if errors.As(err, &outside) {
		return fmt.Sprintf("must refer to nothing outside itself, such as %q", shorten(outside.URL))
	}
	var misfit *jsonschema.SchemaValidationError
	if errors.As(err, &misfit) {
		if violation, ok := misfit.Err.(*jsonschema.ValidationError); ok {
			first := (&judge{data: doc}).first(violation)
			if len(first.path) == 0 {
				return shorten("is not a JSON schema: it " + first.reason)
			}
			return shorten(fmt.Sprintf("is not a JSON schema: %s %s", first.field(), first.reason))
		}
	}
	return shorten("cannot be compiled: " + strings.ReplaceAll(err.Error(), location, ""))
}

// Accepts returns nil when data satisfies the schema, and otherwise an error
// with the dotted path of the first violation within the data, or "(root)".
// Data that cannot be judged, such as none, is an error of the named field.
func (s *Schema) Accepts(field string, data map[string]any) error {
	if data == nil {
		return fault.Invalid(field, "is required", nil)
	}
	// The library fails on numbers without bound, and so gets a copy with
	// ordinary ones.
	copied, err := new(copier).copy(data, maxDepth)
	if err != nil {
		return fault.Invalid(field, err.Error(), nil)
	}
	if s.root == nil {
		return nil
	}
	violation, err := s.meter.validate(s.root, copied)
	if err != nil {
		return fault.Invalid(field, err.Error(), nil)
	}
	if violation == nil {
		return nil
	}
	j := judge{data: copied, titles: s.titles}
	first := j.first(violation)
	return fault.Invalid(first.field(), first.reason, render(j.at(first.path)))
}
