package console

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// paramPrefix is what inputs of parameters are called before the name of theirs.
const paramPrefix = "p."

// maxShown is how much of an answer a page shows.
const maxShown = 64 << 10

// apiIndex is the page that lists operations.
type apiIndex struct {
	Query  string
	Groups []apiGroup
	Total  int
}

type apiGroup struct {
	API, Name, Doc string
	Ops            []apiLink
}

type apiLink struct{ Method, Path, Doc, Href string }

// apiPages leads to the pages about the APIs.
func (v *visit) apiPages(parts []string) {
	switch len(parts) {
	case 1:
		v.apiIndex()
	case 3:
		v.apiOperation(parts[1], parts[2])
	default:
		v.missing()
	}
}

// apiIndex lists the operations of both APIs by what they are about.
func (v *visit) apiIndex() {
	view := apiIndex{Query: strings.TrimSpace(v.r.URL.Query().Get("q"))}
	for _, name := range apiNames {
		d, err := v.apiDoc(name)
		if err != nil {
			v.fail(err)
			return
		}
		groups := d.groups(name, view.Query)
		for _, g := range groups {
			view.Total += len(g.Ops)
		}
		view.Groups = append(view.Groups, groups...)
	}
	v.show(http.StatusOK, "api", page{Title: "API", Body: view})
}

// groups are the operations that have a text in them, by tag.
func (d *apiDoc) groups(api, text string) (groups []apiGroup) {
	text = strings.ToLower(text)
	byTag := map[string][]apiLink{}
	for _, op := range d.ops {
		if text != "" && !strings.Contains(strings.ToLower(op.method+" "+op.path+" "+op.Name+" "+op.Short), text) {
			continue
		}
		for _, tag := range op.Tags {
			byTag[tag] = append(byTag[tag], apiLink{op.method, d.root + op.path, op.Short, link("api", api, op.Name)})
		}
	}
	methods := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	for _, tag := range d.Tags {
		ops := byTag[tag.Name]
		if len(ops) == 0 {
			continue
		}
		slices.SortFunc(ops, func(a, b apiLink) int {
			if by := strings.Compare(a.Path, b.Path); by != 0 {
				return by
			}
			return slices.Index(methods, a.Method) - slices.Index(methods, b.Method)
		})
		groups = append(groups, apiGroup{API: d.Info.Title, Name: titled(strings.ReplaceAll(tag.Name, "-", " ")), Doc: tag.Doc, Ops: ops})
	}
	return groups
}

// operationView is the page of an operation.
type operationView struct {
	Method, Path, Name, Doc string
	API                     string
	Params, Members         []bodyMember
	BodyType                string
	Answer                  []bodyMember
	Action                  string
	Inputs                  []*inputView
	Why                     string // it cannot be tried here; empty if it can
	Reads                   bool   // it changes nothing, and needs no second thought
	Sure                    bool   // the next button sends it
	Problem                 string
	Result                  *resultView
}

// resultView is what came of a request.
type resultView struct {
	Request, Status string
	Good            bool
	Headers         []bodyMember
	Body            string
	Cut             int // bytes that are not shown
	Note            string
}

// apiOperation shows an operation, and tries it.
func (v *visit) apiOperation(api, name string) {
	d, err := v.apiDoc(api)
	if err != nil {
		v.fail(err)
		return
	}
	if d == nil || d.ops[name] == nil {
		v.missing()
		return
	}
	op := d.ops[name]
	view := d.describe(op)
	view.Action, view.Why = link("api", api, name), v.untried(op)
	in, status := v.r.URL.Query(), http.StatusOK
	switch {
	case v.r.Method == http.MethodPost && !v.receive(v.MaxBody):
		return
	case v.r.Method == http.MethodPost:
		in = v.form
		switch {
		case view.Why != "" || view.Reads:
			status, view.Problem = http.StatusBadRequest, "Nothing was sent."
		case !v.ours():
			status, view.Problem = http.StatusForbidden, "The page was of another session. Nothing was sent yet."
		case !in.Has("sure"):
			if _, missing := op.expanded(in); missing != "" {
				status, view.Problem = http.StatusBadRequest, "Nothing was sent: "+missing+" is missing, or has a slash in it."
			} else {
				view.Sure = true
			}
		default:
			status = v.try(d, op, in, &view)
		}
	case in.Has("run") && view.Reads && view.Why == "":
		status = v.try(d, op, in, &view)
	}
	view.Inputs = d.tryInputs(op, in)
	v.show(status, "operation", page{Title: op.Name, Body: view})
}

// describe is what the specification says of an operation.
func (d *apiDoc) describe(op *apiOp) operationView {
	view := operationView{Method: op.method, Path: d.root + op.path, Name: op.Name, Doc: op.Doc, API: d.Info.Title, Reads: op.method == http.MethodGet}
	for _, p := range op.Params {
		doc := p.Doc
		if p.In != "query" {
			doc += " In the " + p.In + "."
		}
		view.Params = append(view.Params, bodyMember{p.Name, d.typeOf(p.Schema), doc, p.Required})
	}
	typ, body := op.bodyOf()
	view.BodyType, view.Members = typ, d.members(body)
	for _, status := range []string{"200", "201"} {
		if a := op.Answers[status]; a != nil {
			if data := d.resolve(a.Content["application/json"].Schema); data != nil {
				s := d.resolve(data.Members["data"])
				if s != nil && s.Type == "array" {
					s = s.Items
				}
				view.Answer = d.members(s)
			}
		}
	}
	return view
}

// untried says why an operation is not tried here; empty if it is. What is secret is
// not to be shown once more on a page that asks whether one is sure.
func (v *visit) untried(op *apiOp) string {
	if op.answersWith("text/event-stream") {
		return "It answers for as long as somebody listens: use curl, or netkeep watch."
	}
	fields, _ := v.Fields(op.method, op.path)
	if slices.ContainsFunc(leavesOf(fields, ""), func(l leaf) bool { return l.field.Secret }) {
		return "Its body holds a secret, which pages do not repeat: use the form of the record, or the command line."
	}
	return ""
}

// tryInputs are the inputs for a request, with what was given.
func (d *apiDoc) tryInputs(op *apiOp, in url.Values) (inputs []*inputView) {
	for _, p := range op.Params {
		if p.In == "header" {
			continue // what is in headers is for clients, or secret
		}
		i := &inputView{Type: "text", Name: paramPrefix + p.Name, ID: "p-" + p.Name, Label: p.Name, Doc: p.Doc, Required: p.Required, Value: in.Get(paramPrefix + p.Name)}
		if s := d.resolve(p.Schema); s != nil && len(s.Enum) > 0 {
			i.Type = "select"
			for _, word := range s.Enum {
				if text, ok := word.(string); ok {
					i.Options = append(i.Options, text)
				}
			}
		}
		inputs = append(inputs, i)
	}
	if typ, body := op.bodyOf(); typ != "" {
		i := &inputView{Type: "area", Name: "body", ID: "body", Label: "Body", Doc: "What is sent, as " + typ + ".", Rows: 10, Value: in.Get("body")}
		if !in.Has("body") && typ == "application/json" {
			i.Value = d.example(body, "")
		}
		inputs = append(inputs, i)
	}
	return inputs
}

// shownHeaders are the headers of an answer that tell somebody something.
var shownHeaders = []string{"Content-Type", "Location", "Net-Ignored", "Netkeep-Revision", "Retry-After"}

// try sends the request in the name of the visitor, and shows what comes of it.
func (v *visit) try(d *apiDoc, op *apiOp, in url.Values, view *operationView) int {
	path, missing := op.expanded(in)
	if missing != "" {
		view.Problem = "Nothing was sent: " + missing + " is missing, or has a slash in it."
		return http.StatusBadRequest
	}
	query := url.Values{}
	for _, p := range op.Params {
		if value := in.Get(paramPrefix + p.Name); p.In == "query" && value != "" {
			query.Set(p.Name, value)
		}
	}
	req, err := v.made(request{method: op.method, path: d.root + path, query: query})
	if err != nil {
		v.Log.Error("a request of the console could not be made", "error", err)
		view.Problem = "Nothing was sent."
		return http.StatusInternalServerError
	}
	if typ, _ := op.bodyOf(); typ != "" && in.Get("body") != "" {
		data := []byte(in.Get("body"))
		req.Header.Set("Content-Type", typ)
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	}
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	v.APIs.ServeHTTP(rec, req)
	view.Result = v.result(rec)
	view.Result.Request = op.method + " " + req.URL.RequestURI()
	return http.StatusOK
}

// result is an answer as it is shown.
func (v *visit) result(rec *recorder) *resultView {
	r := &resultView{Status: strings.TrimSpace(strconv.Itoa(rec.status) + " " + http.StatusText(rec.status)), Good: rec.status < http.StatusBadRequest}
	for _, name := range shownHeaders {
		if value := rec.header.Get(name); value != "" {
			r.Headers = append(r.Headers, bodyMember{Name: strings.ToLower(name), Doc: value})
		}
	}
	body := rec.body.Bytes()
	switch typ := rec.header.Get("Content-Type"); {
	case rec.over:
		r.Note = "The answer is too large to be shown: ask for less of it."
	case strings.HasPrefix(typ, "application/json"):
		text := jsontext.Value(body).Clone()
		_ = text.Indent(jsontext.WithIndent("  "))
		r.Body = string(text)
	case utf8.Valid(body):
		r.Body = string(body)
	default:
		r.Note = size(int64(len(body))) + " that are no text."
	}
	if v.token != "" { // of which scripts know nothing either
		r.Body = strings.ReplaceAll(r.Body, v.token, "…")
	}
	if len(r.Body) > maxShown {
		r.Cut = len(r.Body) - maxShown
		r.Body = strings.ToValidUTF8(r.Body[:maxShown], "")
	}
	return r
}
