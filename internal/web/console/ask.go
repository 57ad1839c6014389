package console

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxAnswer is how much of an answer a page takes.
const maxAnswer = 16 << 20

// request is what is asked of an API.
type request struct {
	method, path string
	query        url.Values
	body         any // written as JSON; none if nil
	bearer       string
}

// answer is what an API said.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// failure is why an API did not do what it was asked for.
type failure struct {
	status  int
	Code    string `json:"code"`
	Message string `json:"message"`
	Request string `json:"requestId"`
	Cause   struct {
		Field   string `json:"field"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"cause"`
}

// Error is for [error].
func (f *failure) Error() string { return f.says() }

// lacks is what somebody lacks who is known and may not do this; empty if that is not
// what is wrong.
func (f *failure) lacks() string {
	if f.status != http.StatusUnauthorized {
		return ""
	}
	return sentence(cmp.Or(f.Cause.Reason, f.Cause.Message))
}

// says is the failure in a sentence for people.
func (f *failure) says() string {
	text := f.Message
	if f.Cause.Reason != "" {
		text = f.Cause.Field + " " + f.Cause.Reason
	}
	return sentence(text)
}

// sentence begins with a capital and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}

// ask sends a request to the APIs in the name of the visitor: from its address, over
// its connection and with its session.
func (v *visit) ask(q request) (*answer, error) {
	req, err := v.made(q)
	if err != nil {
		return nil, err
	}
	rec := &recorder{header: http.Header{}, status: http.StatusOK}
	v.APIs.ServeHTTP(rec, req)
	if rec.over {
		return nil, errors.New("console: an answer is larger than a page can be")
	}
	a := &answer{rec.status, rec.header, rec.body.Bytes()}
	if a.status < http.StatusBadRequest {
		return a, nil
	}
	var said struct {
		Error failure `json:"error"`
	}
	if err := json.Unmarshal(a.body, &said); err != nil {
		return nil, err
	}
	said.Error.status = a.status
	return nil, &said.Error
}

// made makes the request of an API out of that of the browser.
func (v *visit) made(q request) (*http.Request, error) {
	header := http.Header{}
	if v.token != "" {
		header.Set("zt-session", v.token)
	}
	if q.bearer == "" && v.token != "" {
		q.bearer = v.factor()
	}
	if q.bearer != "" {
		header.Set("Authorization", "Bearer "+q.bearer)
	}
	req := &http.Request{
		Method: q.method, URL: &url.URL{Path: q.path, RawQuery: q.query.Encode()}, Header: header, Host: v.r.Host,
		Proto: v.r.Proto, ProtoMajor: v.r.ProtoMajor, ProtoMinor: v.r.ProtoMinor, RemoteAddr: v.r.RemoteAddr, TLS: v.r.TLS, Body: http.NoBody,
	}
	if q.body != nil {
		data, err := json.Marshal(q.body, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		header.Set("Content-Type", "application/json")
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	}
	return req.WithContext(v.r.Context()), nil
}

// get reads one thing.
func (v *visit) get(path string, query url.Values, into any) error {
	a, err := v.ask(request{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return err
	}
	return a.data(into)
}

// data reads what the answer carries.
func (a *answer) data(into any) error {
	said := struct {
		Data jsontext.Value `json:"data"`
	}{}
	if err := json.Unmarshal(a.body, &said); err != nil {
		return err
	}
	return json.Unmarshal(said.Data, into)
}

// read reads the whole answer.
func (a *answer) read(into any) error { return json.Unmarshal(a.body, into) }

// listing is a page of a list.
type listing struct {
	Data []members `json:"data"`
	Meta struct {
		Fields     []string `json:"filterableFields"`
		Pagination struct {
			Total int `json:"totalCount"`
		} `json:"pagination"`
	} `json:"meta"`
}

// list reads some records.
func (v *visit) list(path string, query url.Values) (*listing, error) {
	a, err := v.ask(request{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return nil, err
	}
	var page listing
	return &page, json.Unmarshal(a.body, &page)
}

// members is a record as an answer has it.
type members map[string]jsontext.Value

// text is a member that is a text; empty if it is none.
func (m members) text(name string) (text string) {
	_ = json.Unmarshal(m[name], &text)
	return text
}

// at is the member at a path.
func (m members) at(path string) jsontext.Value {
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return m[name]
	}
	var inner members
	if json.Unmarshal(m[name], &inner) != nil {
		return nil
	}
	return inner.at(rest)
}

// recorder keeps an answer, up to a bound. Deadlines are for connections, and it has
// none.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	over   bool
}

func (r *recorder) Header() http.Header    { return r.header }
func (r *recorder) WriteHeader(status int) { r.status = status }
func (r *recorder) Write(p []byte) (int, error) {
	if r.body.Len()+len(p) > maxAnswer {
		r.over = true
		return 0, errors.New("console: the answer is too large")
	}
	return r.body.Write(p)
}
