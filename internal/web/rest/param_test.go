package rest

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"netkeep.internal/internal/lang/fault"
)

// called returns a call of an operation that declares parameters, with what
// its request carries read.
func called(query, header string, params ...Parameter) (*Call, error) {
	r := httptest.NewRequest(http.MethodGet, "/?"+query, nil)
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.Header.Set(name, value)
	}
	c := &Call{request: r, op: &operation{Op: Op{Name: "test", Params: params}}}
	return c, c.readParams()
}

func hash(s string) string {
	if !strings.HasPrefix(s, "#") {
		return "must begin with #"
	}
	return ""
}

func TestParams(t *testing.T) {
	var (
		text   = TextParam("text", "Any text.")
		format = FormatParam("format", "Any word.", "word", "must be a word", func(s string) bool { return !strings.Contains(s, " ") })
		choice = ChoiceParam("choice", "One of two.", Exactly, "One", "Two")
		folded = ChoiceParam("folded", "One of two.", strings.EqualFold, "One", "Two")
		number = NumberParam("number", "Any number.")
		texts  = TextsParam("texts", "Any texts.", hash)
		header = TextParam("x-header", "Any text.").InHeader()
	)
	type values struct {
		text, format, choice, folded string
		number                       int64
		texts                        []string
		header                       string
	}
	for _, test := range []struct {
		query, header string
		want          values
		wrong, reason string
	}{
		{query: ""},
		{query: "text=&format=&choice=&number=&other=1"},
		{query: "text=a+b&text=c&format=w&choice=Two&folded=tWO", want: values{text: "a b", format: "w", choice: "Two", folded: "Two"}},
		{query: "number=-9223372036854775808", want: values{number: -1 << 63}},
		{query: "texts=%23a&texts=%23b", want: values{texts: []string{"#a", "#b"}}},
		{query: "x-header=1", header: "X-Header: 2", want: values{header: "2"}},
		{query: "format=a+b", wrong: "format", reason: "must be a word"},
		{query: "choice=two", wrong: "choice", reason: "must be one of One, Two"},
		{query: "folded=three", wrong: "folded", reason: "must be one of One, Two"},
		{query: "number=1.5", wrong: "number", reason: "must be a whole number"},
		{query: "number=9223372036854775808", wrong: "number", reason: "must be a whole number"},
		{query: "texts=%23a&texts=b", wrong: "texts", reason: "must begin with #"},
		{query: "texts=", wrong: "texts", reason: "must begin with #"},
	} {
		c, err := called(test.query, test.header, text, format, choice, folded, number, texts, header)
		if test.wrong != "" {
			if f, ok := err.(*fault.Error); !ok || f.Code != fault.CodeInvalid || f.Field != test.wrong || f.Reason != test.reason {
				t.Errorf("%s: %v", test.query, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.query, err)
			continue
		}
		got := values{text: text.Of(c), format: format.Of(c), choice: choice.Of(c), folded: folded.Of(c), texts: texts.Of(c), header: header.Of(c)}
		if n := number.Of(c); n != nil {
			got.number = *n
		}
		if got.text != test.want.text || got.format != test.want.format || got.choice != test.want.choice || got.folded != test.want.folded ||
			got.number != test.want.number || !slices.Equal(got.texts, test.want.texts) || got.header != test.want.header {
			t.Errorf("%s: got %+v, want %+v", test.query, got, test.want)
		}
	}
}

func TestRequiredParams(t *testing.T) {
	p := TextParam("token", "A token.").Required()
	for _, query := range []string{"", "token=", "other=1"} {
		_, err := called(query, "", p)
		if f, ok := err.(*fault.Error); !ok || f.Field != "token" || f.Reason != "is required" {
			t.Errorf("%q: %v", query, err)
		}
	}
	if c, err := called("token=x", "", p); err != nil || p.Of(c) != "x" {
		t.Errorf("a required parameter is refused: %v", err)
	}
}

// TestUndeclaredParams shows that a handler cannot read what its operation
// does not declare.
func TestUndeclaredParams(t *testing.T) {
	declared, other := TextParam("a", "A."), TextParam("a", "Another a.")
	c, err := called("a=1", "", declared)
	if err != nil || declared.Of(c) != "1" {
		t.Fatalf("got %v", err)
	}
	defer func() {
		if p := recover(); p == nil {
			t.Error("a parameter was read that the operation does not declare")
		}
	}()
	other.Of(c)
}

func TestParamsDeclaredTwice(t *testing.T) {
	o := &operation{Op: Op{Params: []Parameter{TextParam("a", "A."), NumberParam("a", "A.").InHeader()}}}
	o.checkParams() // one in the query and one in a header are two
	defer func() {
		if p := recover(); p == nil {
			t.Error("two parameters have one name")
		}
	}()
	o.Params = append(o.Params, NumberParam("a", "A."))
	o.checkParams()
}

// FuzzParams reads whatever a query may hold.
func FuzzParams(f *testing.F) {
	for _, query := range []string{"", "limit=1", "limit=x&limit=1", "limit=%zz", "offset=1;limit=2", "filter=%00&sort=%ff"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := &http.Request{URL: &url.URL{RawQuery: query}}
		c := &Call{request: r, op: &operation{Op: Op{Name: "test", Params: listParams}}}
		if err := c.readParams(); err != nil {
			if f, ok := err.(*fault.Error); !ok || f.Field != "limit" && f.Field != "offset" {
				t.Errorf("%q: %v", query, err)
			}
			return
		}
		if got, want := filterParam.Of(c), r.URL.Query().Get("filter"); got != want {
			t.Errorf("%q: filter %q, want %q", query, got, want)
		}
	})
}
