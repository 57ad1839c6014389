package torture

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// generator makes what a specification asks for, and spoils some of it.
type generator struct {
	*rand.Rand

	ids []string // of records that there are
}

// pick chooses one of several, by their weights.
func (g *generator) pick(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	at := g.IntN(sum)
	for i, w := range weights {
		if at -= w; at < 0 {
			return i
		}
	}
	return 0
}

// words are texts that nobody should mean.
var words = []string{
	"", " ", "\x00", "a\x00b", "null", "true", "-1", "0", "1e999", "9999999999999999999999", "NaN", "../../../etc/passwd", "..", ".", "//", "%00", "%2f",
	"'", "\"", "\\", "`", "$(id)", "{{7*7}}", "<script>", "\u202e", "\u200b", "\ufeff", "é", "日本語", "\U0001F600", "\xff\xfe", "\xc3", "a\r\nX: y",
	"#all", "@", "@all", "#", "#\x00", "*", "tcp:1.2.3.4:5", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "2026-13-45T99:99:99Z",
	"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----",
	"eyJhbGciOiJub25lIn0.e30.", "a.b.c", "https://[::1", "http://127.0.0.1:1/", "file:///etc/passwd", "name = ", "(((((", "not not not true", "limit none skip -1",
	"sort by", "anyOf(", "true or", strings.Repeat("(", 300), strings.Repeat("a", 5000), strings.Repeat("true and ", 600) + "true", strings.Repeat("[", 2000),
}

func (g *generator) word() string {
	if g.IntN(3) == 0 && len(g.ids) > 0 {
		return g.ids[g.IntN(len(g.ids))]
	}
	if g.IntN(8) == 0 {
		b := make([]byte, g.IntN(40))
		for i := range b {
			b[i] = byte(g.Uint32())
		}
		return string(b)
	}
	return words[g.IntN(len(words))]
}

// path fills in what is open in a path, and adds parameters.
func (g *generator) path(o operation) string {
	parts := strings.Split(o.path, "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		word := g.word()
		if len(g.ids) > 0 && g.IntN(3) > 0 {
			word = g.ids[g.IntN(len(g.ids))]
		}
		parts[i] = url.PathEscape(word)
	}
	query := url.Values{}
	for _, p := range o.op.Parameters {
		if p.Value.In == "query" && g.IntN(3) > 0 {
			query.Add(p.Value.Name, g.parameter(p.Value))
			if g.IntN(10) == 0 {
				query.Add(p.Value.Name, g.word())
			}
		}
	}
	if g.IntN(10) == 0 {
		query.Add(g.word(), g.word())
	}
	path := strings.Join(parts, "/")
	if len(query) == 0 {
		return path
	}
	if g.IntN(30) == 0 {
		return path + "?" + strings.Repeat("%", 1+g.IntN(3)) + "zz&;=&"
	}
	return path + "?" + query.Encode()
}

func (g *generator) parameter(p *openapi3.Parameter) string {
	if p.Name == "filter" && g.IntN(2) == 0 {
		return g.filter()
	}
	if g.IntN(2) == 0 || p.Schema == nil {
		return g.word()
	}
	text, err := json.Marshal(g.value(p.Schema, 0))
	if err != nil {
		return g.word()
	}
	return strings.Trim(string(text), `"`)
}

// filter is a filter, or nearly one.
func (g *generator) filter() string {
	tokens := []string{
		"name", "id", "createdAt", "tags.a", "roleAttributes", "isAdmin", "=", "!=", "<", ">", "contains", "in", "[", "]", "(", ")", ",", `"a"`, "1", "-1.5e9",
		"true", "false", "null", "and", "or", "not", "anyOf(", "allOf(", "count(", "isEmpty(", "from", "where", "sort by", "asc", "desc", "limit", "skip", "none",
		"datetime(2026-01-01T00:00:00Z)", "icontains", "between", "\x00", "é",
	}
	var b strings.Builder
	for range 1 + g.IntN(12) {
		b.WriteString(tokens[g.IntN(len(tokens))] + " ")
	}
	return b.String()
}

// headers are those that an operation reads, and one that nobody should.
func (g *generator) headers(op *openapi3.Operation, h http.Header) {
	sendable := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' {
				return -1
			}
			return r
		}, s)
	}
	for _, p := range op.Parameters {
		if p.Value.In == "header" && g.IntN(2) == 0 {
			h.Set(p.Value.Name, sendable(g.word()))
		}
	}
	odd := []string{"Accept", "Authorization", "Range", "If-Match", "Content-Encoding", "X-Forwarded-For", "Accept-Encoding", "Last-Event-ID", "zt-session", "Origin"}
	if g.IntN(5) == 0 {
		h.Set(odd[g.IntN(len(odd))], sendable(g.word()))
	}
}

// body makes a body for an operation: as it should be, with something wrong in it, or
// nothing that anybody could read.
func (g *generator) body(op *openapi3.Operation) (body []byte, contentType string) {
	contentType = "application/json"
	if g.IntN(25) == 0 {
		contentType = []string{"", "text/plain", "application/xml", "multipart/form-data", "application/json; charset=utf-16", "application/yaml", ";;", "application/x-pem-file"}[g.IntN(8)]
	}
	if op.RequestBody == nil {
		if g.IntN(4) > 0 {
			return nil, ""
		}
		return []byte(g.word()), contentType
	}
	content := op.RequestBody.Value.Content
	media := content.Get("application/json")
	if media == nil {
		for name, m := range content {
			contentType, media = name, m
		}
	}
	if media == nil || media.Schema == nil || g.IntN(20) == 0 {
		return []byte(g.word()), contentType
	}
	text, err := json.Marshal(g.value(media.Schema, 0))
	if err != nil {
		return []byte(g.word()), contentType
	}
	switch g.pick(10, 1, 1, 1, 1) {
	case 1:
		return text[:g.IntN(len(text)+1)], contentType
	case 2:
		for range 1 + g.IntN(5) {
			text[g.IntN(len(text))] = byte(g.Uint32())
		}
	case 3:
		return slices.Concat(text, []byte(g.word())), contentType
	case 4:
		return []byte(strings.Repeat(`{"a":`, g.IntN(2000)) + string(text)), contentType
	}
	return text, contentType
}

// value is one that the schema asks for, now and then with something else in its place.
func (g *generator) value(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || ref.Value == nil || depth > 8 || g.IntN(12) == 0 {
		return g.anything(depth)
	}
	s := ref.Value
	if variants := slices.Concat(s.AnyOf, s.OneOf); len(variants) > 0 {
		return g.value(variants[g.IntN(len(variants))], depth+1)
	}
	if len(s.AllOf) > 0 {
		return g.value(s.AllOf[0], depth+1)
	}
	switch {
	case len(s.Enum) > 0 && g.IntN(4) > 0:
		return s.Enum[g.IntN(len(s.Enum))]
	case s.Type.Is("object"):
		return g.object(s, depth)
	case s.Type.Is("array"):
		list := make([]any, g.IntN(4))
		for i := range list {
			list[i] = g.value(s.Items, depth+1)
		}
		return list
	case s.Type.Is("boolean"):
		return g.IntN(2) == 0
	case s.Type.Is("integer"), s.Type.Is("number"):
		return []any{0, 1, -1, 80, 65536, math.MaxInt32, math.MinInt64, 1.5, 1e18}[g.IntN(9)]
	case g.IntN(2) == 0:
		return "n-" + strconv.FormatUint(g.Uint64(), 36)
	}
	return g.word()
}

func (g *generator) object(s *openapi3.Schema, depth int) any {
	made := map[string]any{}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names) // so that a seed says everything
	for _, name := range names {
		if slices.Contains(s.Required, name) && g.IntN(15) > 0 || g.IntN(2) == 0 {
			made[name] = g.value(s.Properties[name], depth+1)
		}
	}
	for g.IntN(6) == 0 {
		made[g.word()] = g.anything(depth)
	}
	return made
}

// anything is what nobody has asked for.
func (g *generator) anything(depth int) any {
	switch g.IntN(9) {
	case 0:
		return nil
	case 1:
		return g.IntN(2) == 0
	case 2:
		return []any{math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxInt64, math.MinInt64, 0.1}[g.IntN(6)]
	case 3:
		return []any{}
	case 4:
		return map[string]any{}
	case 5:
		if depth < 6 {
			return map[string]any{g.word(): g.anything(depth + 1)}
		}
	case 6:
		if depth < 6 {
			return []any{g.anything(depth + 1), g.anything(depth + 1)}
		}
	}
	return g.word()
}
