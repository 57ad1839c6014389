package servertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"netkeep.internal/internal/web/api"
)

// specs are the controller's own specifications, by the root of their API.
type specs map[string]*openapi3.T

// parsed keeps documents that were read before: all controllers of a process
// serve the same, and reading one takes long.
var parsed sync.Map // text to *openapi3.T

// loadSpecs fetches and checks the documents. The Client API has all, and is
// where the others may not be.
func loadSpecs(client *http.Client, url string) (specs, error) {
	loaded := specs{}
	for root, id := range map[string]string{api.ClientRoot: "edge-client", api.ManagementRoot: "edge-management", api.FabricRoot: "fabric"} {
		text, err := fetchSpec(client, url+api.ClientRoot+"/specs/"+id+"/spec")
		if err != nil {
			return nil, err
		}
		doc, known := parsed.Load(text)
		if !known {
			if doc, err = parseSpec(text); err != nil {
				return nil, fmt.Errorf("specification %s: %w", id, err)
			}
			parsed.Store(text, doc)
		}
		loaded[root] = doc.(*openapi3.T)
	}
	return loaded, nil
}

func fetchSpec(client *http.Client, url string) (string, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	return string(text), errors.Join(err, resp.Body.Close())
}

func parseSpec(text string) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	closeAnswers(doc)
	return doc, nil
}

// Operations returns the operations of an API's specification by method and
// path, as in "GET /edge/client/v1/specs/{id}".
func (s *Server) Operations(root string) map[string]*openapi3.Operation {
	all := map[string]*openapi3.Operation{}
	for path, item := range s.specs[root].Paths.Map() {
		for method, op := range item.Operations() {
			all[method+" "+root+path] = op
		}
	}
	return all
}

// closeAnswers makes members that the specification does not mention an error
// in answers, wherever it mentions any.
func closeAnswers(doc *openapi3.T) {
	seen := map[*openapi3.Schema]bool{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for _, resp := range op.Responses.Map() {
				for _, media := range resp.Value.Content {
					closeSchema(media.Schema, seen)
				}
			}
		}
	}
}

func closeSchema(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if ref == nil || seen[ref.Value] {
		return
	}
	s := ref.Value
	seen[s] = true
	if len(s.Properties) > 0 && s.AdditionalProperties.Schema == nil && s.AdditionalProperties.Has == nil {
		s.AdditionalProperties.Has = new(bool)
	}
	for _, p := range s.Properties {
		closeSchema(p, seen)
	}
	// A reference with words of its own is in an allOf. Both must allow a null,
	// though the validator takes one that either allows.
	for _, part := range s.AllOf {
		part.Value.Nullable = false
		closeSchema(part, seen)
	}
	for _, variant := range s.AnyOf {
		closeSchema(variant, seen)
	}
	closeSchema(s.Items, seen)
	closeSchema(s.AdditionalProperties.Schema, seen)
}

// find returns the operation that serves a request, nil if there is none, and
// whether its path exists at all.
func (all specs) find(method, path string) (op *openapi3.Operation, known bool) {
	root := api.ClientRoot
	for _, prefix := range []string{api.ManagementRoot, api.FabricRoot, api.ClientRoot, "/edge/v1"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok && (rest == "" || rest[0] == '/') {
			path = rest
			if all[prefix] != nil {
				root = prefix
			}
			break
		}
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for template, item := range all[root].Paths.Map() {
		if matches(template, path) {
			op, known = item.GetOperation(method), true
			// A fixed path goes before one with parameters.
			if !strings.Contains(template, "{") {
				break
			}
		}
	}
	return op, known
}

func matches(template, path string) bool {
	want, got := strings.Split(strings.Trim(template, "/"), "/"), strings.Split(strings.Trim(path, "/"), "/")
	if len(want) != len(got) {
		return false
	}
	for i, part := range want {
		if part != got[i] && (!strings.HasPrefix(part, "{") || got[i] == "") {
			return false
		}
	}
	return true
}

// check says how an answer differs from what the specification promises.
func (all specs) check(method, path string, a *Answer) error {
	op, known := all.find(method, path)
	switch {
	case a.Status >= 500:
		return errors.New("it is the server's failure")
	case !known && a.Status != http.StatusNotFound:
		return errors.New("the specification has no such path")
	case known && op == nil && a.Status != http.StatusMethodNotAllowed:
		return errors.New("the specification has no such method")
	case len(a.Raw) == 0:
		return nil
	case op == nil:
		// Every operation's failures look alike.
		op = all[api.ClientRoot].Paths.Value("/version").Get
	}
	resp := op.Responses.Status(a.Status)
	if resp == nil {
		resp = op.Responses.Default()
	}
	media := resp.Value.Content.Get(a.Header.Get("Content-Type"))
	if media == nil {
		return fmt.Errorf("the specification has no %s for status %d", a.Header.Get("Content-Type"), a.Status)
	}
	if a.JSON == nil {
		return nil
	}
	return media.Schema.Value.VisitJSON(a.JSON, openapi3.VisitAsResponse(), openapi3.EnableFormatValidation())
}

// checkBody says why the specification forbids a body that was accepted.
func (all specs) checkBody(method, path string, body any) error {
	op, _ := all.find(method, path)
	if op == nil || op.RequestBody == nil {
		return nil
	}
	media := op.RequestBody.Value.Content.Get("application/json")
	return media.Schema.Value.VisitJSON(body, openapi3.VisitAsRequest(), openapi3.EnableFormatValidation())
}
