package rest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/lang/kind"
)

// schema names a schema in the document and returns a reference to it.
func (a *API) schema(name, doc string, s kind.Schema) kind.Schema {
	if a.schemas == nil {
		a.schemas = map[string]kind.Schema{}
	}
	a.schemas[name] = kind.Described(s, doc)
	return kind.RefTo(name)
}

// Spec returns the API's OpenAPI 3 document as JSON, in one order.
func (a *API) Spec() ([]byte, error) {
	schemas := kind.Shared()
	maps.Copy(schemas, sharedSchemas)
	maps.Copy(schemas, a.schemas)
	paths, tags := kind.Schema{}, map[string]bool{}
	for _, o := range a.ops {
		item, ok := paths[o.Path].(kind.Schema)
		if !ok {
			item = kind.Schema{}
			paths[o.Path] = item
		}
		item[strings.ToLower(o.Method)] = o.spec()
		tags[o.Tag] = true
	}
	var groups []any
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		if a.Groups[tag] == "" {
			return nil, fmt.Errorf("rest: nobody says what the operations of the tag %s are about", tag)
		}
		groups = append(groups, kind.Schema{"name": tag, "description": a.Groups[tag]})
	}
	return json.Marshal(kind.Schema{
		"openapi": "3.0.3",
		"info": kind.Schema{
			"title": a.Title, "version": a.Version, "description": a.Doc,
			"license": kind.Schema{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
		},
		"servers": []any{kind.Schema{"url": a.Root}},
		"tags":    groups,
		"paths":   paths,
		"components": kind.Schema{
			"schemas": schemas, "responses": failures, "headers": headers, "securitySchemes": securitySchemes,
		},
	}, json.Deterministic(true))
}

// headers are those that answers of several operations have.
var headers = kind.Schema{
	ignoredHeader: kind.Schema{
		"description": "Members of the body that the operation does not know and has ignored, as a list of strings (RFC 9651) " +
			"with dotted paths, each with the parameter near if it looks like a slip of the pen. A star says that there were more. " +
			"Answers that say why a body was refused carry it too.",
		"schema": text, "example": `"roleAtributes";near="roleAttributes"`,
	},
	revisionHeader: kind.Schema{
		"description": "How much of all that was ever changed the controller knows of. A request that sends the header back, to whichever controller of " +
			"the network, is answered by one that knows as much: it waits a moment for that, and is refused with 503 if it is in vain.",
		"schema": whole, "example": 4711,
	},
}

// securitySchemes are the headers that carry a session's token. One is enough.
var securitySchemes = kind.Schema{
	"netSession": kind.Schema{
		"type": "apiKey", "in": "header", "name": sessionHeader,
		"description": "The token of an API session, as authenticating answers it.",
	},
	"ztSession": kind.Schema{
		"type": "apiKey", "in": "header", "name": otherSessionHeader,
		"description": "The same token under the name that older clients know.",
	},
}

// needs says in a sentence what a caller must have shown.
var needs = map[Access]string{
	Anonymous: "Needs no session.",
	Partial:   "Needs a session, of which factors may be missing.",
	Full:      "Needs a session with every factor shown.",
	Admin:     "Needs a session with every factor shown, of an admin or of somebody whose admin roles allow it",
}

// power ends the sentence that says what callers need.
func (o *operation) power() string {
	switch o.Need {
	case "":
		return ""
	case AnyPower:
		return ", for each of its parts."
	}
	return ": " + o.Need + "."
}

// spec describes one operation.
func (o *operation) spec() kind.Schema {
	security := []any{}
	if o.Auth != Anonymous {
		security = append(security, kind.Schema{"netSession": []string{}}, kind.Schema{"ztSession": []string{}})
	}
	s := kind.Schema{
		"operationId": o.Name, "tags": []string{o.Tag}, "summary": o.Doc, "description": o.Doc + " " + needs[o.Auth] + o.power(),
		"x-access": o.Auth.String(), "security": security, "responses": o.responses(),
	}
	if o.Need != "" {
		s["x-power"] = o.Need
	}
	if params := o.parameters(); len(params) > 0 {
		s["parameters"] = params
	}
	if content := o.body.content(o.Consumes); len(content) > 0 {
		s["requestBody"] = kind.Schema{"required": !o.BodyOptional, "content": content}
	}
	return s
}

// content describes a body in each of its types.
func (in input) content(consumes []string) kind.Schema {
	content := kind.Schema{}
	if in.text {
		for _, typ := range consumes {
			content[typ] = kind.Schema{"schema": text}
		}
	}
	if in.json != nil {
		content[jsonType] = kind.Schema{"schema": in.json}
	}
	return content
}

func (o *operation) parameters() []any {
	var params []any
	before := ""
	for part := range strings.SplitSeq(o.Path, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			params = append(params, pathParam(strings.TrimSuffix(name, "}"), before))
		}
		before = part
	}
	for _, p := range o.Params {
		params = append(params, p.spec())
	}
	return params
}

// pathParam describes the id of one of a collection: the one before it in the
// path, unless the name says which.
func pathParam(name, collection string) kind.Schema {
	if of := strings.TrimSuffix(name, "Id"); of != name {
		collection = of + "s"
	}
	return kind.Schema{
		"in": "path", "name": name, "required": true, "schema": text,
		"description": "Id of one of the " + strings.ReplaceAll(collection, "-", " ") + ".",
	}
}

func (o *operation) responses() kind.Schema {
	content := kind.Schema{}
	data, meta := o.data, kind.RefTo("meta")
	if o.list {
		data, meta = says("The entries of the page, in order.", data), kind.RefTo("listMeta")
	}
	if data != nil {
		content[jsonType] = kind.Schema{"schema": object(kind.Schema{"data": data, "meta": meta}, "data", "meta")}
	}
	for _, t := range o.Types {
		content[t] = kind.Schema{"schema": bareSchema(t)}
	}
	done := kind.Schema{"description": "Done.", "content": content}
	shown := kind.Schema{revisionHeader: kind.Schema{"$ref": "#/components/headers/" + revisionHeader}}
	if o.body.json != nil {
		shown[ignoredHeader] = kind.Schema{"$ref": "#/components/headers/" + ignoredHeader}
	}
	done["headers"] = shown
	all := kind.Schema{strconv.Itoa(o.status): done}
	for _, code := range o.failures() {
		all[code] = kind.Schema{"$ref": "#/components/responses/" + code}
	}
	return all
}

// failures are the statuses with which the operation may fail, those by name
// that a client can do something about.
func (o *operation) failures() []string {
	codes := []string{"4XX", "5XX", "503"}
	add := func(may bool, status ...string) {
		if may {
			codes = append(codes, status...)
		}
	}
	body := o.body.json != nil || o.body.text
	add(body || len(o.Params) > 0, "400")
	add(o.Auth != Anonymous || o.Attempts != nil, "401")
	add(strings.Contains(o.Path, "{"), "404")
	add(o.Method != http.MethodGet && o.Auth != Anonymous, "409")
	add(body, "413")
	add(o.Attempts != nil || o.stream, "429")
	return codes
}

// failures describe the answers to what was not done.
var failures = kind.Schema{
	"400": failure("A parameter or the body is not acceptable; the cause names the field and the reason."),
	"401": failure("The credential is not good, the session has ended, or it lacks a factor or the rights for this."),
	"404": failure("There is no such record, or the caller cannot see it."),
	"409": failure("It is in use, or something else stands against it."),
	"413": failure("The body is too large."),
	"429": retry(failure("There were too many attempts from this address, or the caller has as many of these open as it may.")),
	"503": retry(failure("The controller is busy, or cannot reach its store.")),
	"4XX": failure("It was refused, and why."),
	"5XX": failure("It went wrong; the controller's log has more under the request's id."),
}

func failure(doc string) kind.Schema {
	return kind.Schema{"description": doc, "content": kind.Schema{jsonType: kind.Schema{"schema": kind.RefTo("errorEnvelope")}}}
}

// retry says when to try again.
func retry(s kind.Schema) kind.Schema {
	s["headers"] = kind.Schema{"Retry-After": kind.Schema{"description": "In how many seconds to try again.", "schema": whole}}
	return s
}

// bareSchema describes a body without an envelope.
func bareSchema(contentType string) kind.Schema {
	switch contentType {
	case jsonType:
		return kind.Schema{"type": "object"}
	case eventType:
		return says("Server-sent events, one after the other until either side ends the answer. A line that begins with a colon is a sign of life; "+
			"the event named end is the last, and says in its data why.", text)
	}
	return kind.Schema{"type": "string", "format": "binary"}
}
