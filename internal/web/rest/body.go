package rest

import (
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// None is the input of an operation that reads no body.
type None struct{}

// Raw is the input of an operation whose body is a text: PEM, mostly. It may
// be left out.
type Raw struct{ Data []byte }

// Form is the input of an operation whose body is a JSON object, or a text of
// a type that the operation consumes. It may be left out.
type Form[T any] struct {
	Fields T
	Text   []byte
}

// Batch is the input of an operation whose body is a list of objects.
type Batch[T any] struct{ Items []T }

// input is what the specification says of a body: a JSON value, a text in the
// types that the operation consumes, or either.
type input struct {
	json   kind.Schema // nil if none is read
	text   bool
	fields []*kind.Field // of the object, if it is one
}

// inputOf returns how to read In from a request, and what the specification
// says of it.
func inputOf[In any](optional bool) (func(*Call) (In, error), input) {
	if _, none := any(*new(In)).(None); none {
		return func(*Call) (in In, err error) { return in, nil }, input{}
	}
	if own, ok := any(new(In)).(bodyReader); ok {
		read, says := own.prepare(optional)
		return func(c *Call) (in In, err error) {
			err = read(c, &in)
			return in, err
		}, says
	}
	form := kind.NewInput[In]()
	read := func(c *Call) (in In, err error) {
		body, err := c.body(optional)
		if err != nil {
			return in, err
		}
		return form.Read(body)
	}
	return read, input{json: form.BodySchema(), fields: form.Fields}
}

// bodyReader is an input with a body of another shape than one object. What
// prepare returns reads one into a pointer to an input of the same type.
type bodyReader interface {
	prepare(optional bool) (read func(c *Call, into any) error, says input)
}

func (*Raw) prepare(bool) (func(*Call, any) error, input) {
	return func(c *Call, into any) error {
		into.(*Raw).Data = c.sent
		return nil
	}, input{text: true}
}

func (*Form[T]) prepare(bool) (func(*Call, any) error, input) {
	form := kind.NewInput[T]()
	return func(c *Call, into any) (err error) {
		in := into.(*Form[T])
		if slices.Contains(c.op.Consumes, c.contentType()) {
			in.Text = c.sent
			return nil
		}
		body, err := c.body(true)
		if err != nil {
			return err
		}
		in.Fields, err = form.Read(body)
		return err
	}, input{json: form.BodySchema(), text: true}
}

func (*Batch[T]) prepare(optional bool) (func(*Call, any) error, input) {
	form := kind.NewInput[T]()
	return func(c *Call, into any) error {
		data, err := c.json(optional)
		if err != nil || len(data) == 0 {
			return err
		}
		bodies, err := kind.ReadBodies(data)
		if err != nil {
			return err
		}
		in := into.(*Batch[T])
		for i, body := range bodies {
			c.input = &body // any of them speaks for all
			item, err := form.Read(body)
			if err != nil {
				return fmt.Errorf("item %d: %w", i, err)
			}
			in.Items = append(in.Items, item)
		}
		return nil
	}, input{json: kind.ListOf(form.BodySchema())}
}

// body reads the request's JSON object.
func (c *Call) body(optional bool) (kind.Body, error) {
	data, err := c.json(optional)
	if err != nil {
		return kind.Body{}, err
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	body, err := kind.ReadBody(data)
	if err == nil {
		c.input = &body
	}
	return body, err
}

// Says reports whether the body has a member that is not null.
func (c *Call) Says(member string) bool { return c.input != nil && c.input.Has(member) }

// json returns the request's body, which must be called JSON and not be too deep
// for it. It is empty only if that is allowed.
func (c *Call) json(optional bool) ([]byte, error) {
	data := c.sent
	if len(data) == 0 {
		if optional {
			return nil, nil
		}
		return nil, fault.Invalid("body", "is required", nil)
	}
	if typ := c.contentType(); typ != jsonType {
		return nil, c.wrongType(typ)
	}
	if tooDeep(data) {
		return nil, fault.New(fault.CodeBody, "the body is nested more than "+strconv.Itoa(maxDepth)+" deep")
	}
	return data, nil
}

// wrongType refuses a body of a type that the operation does not read. Those
// that read several have a code of their own for it.
func (c *Call) wrongType(typ string) error {
	if len(c.op.Consumes) == 0 {
		return fault.Invalid("Content-Type", "must be "+jsonType, typ)
	}
	may := strings.Join(append([]string{jsonType}, c.op.Consumes...), " or ")
	return fault.On(fault.CodeContentType, "Content-Type", "must be "+may, typ)
}

const jsonType = "application/json"

// contentType is what the request calls its body, without parameters.
func (c *Call) contentType() string {
	typ, _, _ := mime.ParseMediaType(c.request.Header.Get("Content-Type"))
	return typ
}

// maxDepth is how deeply a body may be nested. What it holds is nested again
// in the answers that show it, and one record must not make a list too deep
// for a client to read.
const maxDepth = 128

// tooDeep looks at brackets only: whether they are in order is for the parser
// to say.
func tooDeep(data []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}
