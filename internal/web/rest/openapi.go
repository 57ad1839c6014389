package rest

import (
	"maps"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep/internal/lang/kind"
)

// schema names a schema in the document and returns a reference to it.
func (a *API) schema(name string, s kind.Schema) kind.Schema {
	if a.schemas == nil {
		a.schemas = map[string]kind.Schema{}
	}
	a.schemas[name] = s
	return kind.RefTo(name)
}

// Spec returns the API's OpenAPI 3 document as JSON, in one order.
func (a *API) Spec() ([]byte, error) {
	schemas := maps.Clone(sharedSchemas)
	maps.Copy(schemas, a.schemas)
	paths := kind.Schema{}
	for _, o := range a.ops {
		item, ok := paths[o.Path].(kind.Schema)
		if !ok {
			item = kind.Schema{}
			paths[o.Path] = item
		}
		item[strings.ToLower(o.Method)] = o.spec()
	}
	return json.Marshal(kind.Schema{
		"openapi": "3.0.3",
		"info":    kind.Schema{"title": a.Title, "version": a.Version, "license": kind.Schema{"name": "Apache-2.0"}},
		"servers": []any{kind.Schema{"url": a.Root}},
		"paths":   paths,
		"components": kind.Schema{
			"schemas": schemas,
			"securitySchemes": kind.Schema{
				"session": kind.Schema{"type": "apiKey", "in": "header", "name": "net-session"},
			},
		},
	}, json.Deterministic(true), jsontext.WithIndent("  "))
}

// spec describes one operation.
func (o *operation) spec() kind.Schema {
	s := kind.Schema{
		"operationId": o.Name, "tags": []string{o.Tag}, "summary": o.Doc,
		"x-access": o.Auth.String(), "responses": o.responses(),
	}
	if o.Auth != Anonymous {
		s["security"] = []any{kind.Schema{"session": []string{}}}
	}
	if params := o.parameters(); len(params) > 0 {
		s["parameters"] = params
	}
	if o.body != nil {
		content := kind.Schema{}
		for _, t := range o.Consumes {
			content[t] = kind.Schema{"schema": o.body}
		}
		if len(content) == 0 {
			content["application/json"] = kind.Schema{"schema": o.body}
		}
		s["requestBody"] = kind.Schema{"required": !o.BodyOptional, "content": content}
	}
	return s
}

func (o *operation) parameters() []any {
	var params []any
	for part := range strings.SplitSeq(o.Path, "/") {
		if strings.HasPrefix(part, "{") {
			params = append(params, kind.Schema{
				"in": "path", "name": strings.Trim(part, "{}"), "required": true, "schema": kind.Schema{"type": "string"},
			})
		}
	}
	for _, p := range o.Query {
		params = append(params, kind.Schema{
			"in": "query", "name": p.Name, "description": p.Doc, "required": p.Need, "schema": p.Schema,
		})
	}
	return params
}

func (o *operation) responses() kind.Schema {
	content := kind.Schema{}
	meta := kind.RefTo("meta")
	if o.list {
		meta = kind.RefTo("listMeta")
	}
	if o.data != nil {
		content["application/json"] = kind.Schema{"schema": kind.Schema{
			"type": "object", "required": []string{"data", "meta"},
			"properties": kind.Schema{"data": o.data, "meta": meta},
		}}
	}
	for _, t := range o.Types {
		content[t] = kind.Schema{"schema": bareSchema(t)}
	}
	return kind.Schema{
		strconv.Itoa(o.status): kind.Schema{"description": "Done.", "content": content},
		"default": kind.Schema{"description": "Not done, and why.", "content": kind.Schema{
			"application/json": kind.Schema{"schema": kind.RefTo("errorEnvelope")},
		}},
	}
}

// bareSchema describes a body without an envelope.
func bareSchema(contentType string) kind.Schema {
	if contentType == "application/json" {
		return kind.Schema{"type": "object"}
	}
	return kind.Schema{"type": "string", "format": "binary"}
}

// sharedSchemas are those that every document has.
var sharedSchemas = map[string]kind.Schema{
	"link": object(kind.Schema{"href": text}, "href"),
	"links": {
		"type": "object", "additionalProperties": kind.RefTo("link"),
	},
	"entityRef": nullable(object(kind.Schema{
		"_links": kind.RefTo("links"), "entity": text, "id": text, "name": text,
	}, "_links", "entity", "id")),
	"createLocation": object(kind.Schema{"id": text, "_links": kind.RefTo("links")}, "id", "_links"),
	"meta":           object(kind.Schema{}),
	"listMeta": object(kind.Schema{
		"pagination": kind.RefTo("pagination"), "filterableFields": kind.ListOf(text),
	}, "pagination", "filterableFields"),
	"pagination": object(kind.Schema{"limit": whole, "offset": whole, "totalCount": whole}, "limit", "offset", "totalCount"),
	"errorEnvelope": object(kind.Schema{
		"error": kind.RefTo("error"),
		"meta":  object(kind.Schema{"apiEnrollmentVersion": text, "apiVersion": text}),
	}, "error", "meta"),
	"error": object(kind.Schema{
		"code": text, "message": text, "requestId": text,
		"cause": object(kind.Schema{"field": text, "reason": text, "value": text, "code": text, "message": text}),
	}, "code", "message", "requestId"),
}

var (
	text  = kind.Schema{"type": "string"}
	whole = kind.Schema{"type": "integer", "format": "int64"}
)

// nullable lets a schema be null where those that refer to it are.
func nullable(s kind.Schema) kind.Schema {
	s["nullable"] = true
	return s
}

func object(props kind.Schema, required ...string) kind.Schema {
	s := kind.Schema{"type": "object", "properties": props}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
