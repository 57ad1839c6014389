package filter

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/spell"
)

// Parse reads a filter.
func Parse(text string) (*Tree, error) { return parse(source{text, fault.CodeFilter}) }

func mustCompile(t testing.TB, text string) *Query[*item] {
	t.Helper()
	q, err := Compile(itemSchema, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return q
}

// repeat joins n copies of a term.
func repeat(term, separator string, n int) string {
	return strings.Repeat(term+separator, n-1) + term
}

func TestBounds(t *testing.T) {
	tests := []struct {
		name string
		text string
		want string // empty if within bounds
	}{
		{"length", "true" + strings.Repeat(" ", MaxLength-4), ""},
		{"one byte more", "true" + strings.Repeat(" ", MaxLength-3), "16385 bytes are more than the 16384 allowed"},
		{"and terms", repeat("admin", " and ", MaxTerms), ""},
		{"one term more", repeat("admin", " and ", MaxTerms+1), "position 5001: more than the 500 terms allowed"},
		{"mixed terms", repeat("admin or cost=1", " and ", MaxTerms/2), ""},
		{"terms in brackets", repeat("(admin or admin)", " and ", MaxTerms/2) + " and true", "more than the 500 terms"},
		{"terms in sub queries", repeat("isEmpty(from parts where true)", " or ", MaxTerms/2), ""},
		{"one sub query more", repeat("isEmpty(from parts where true)", " or ", MaxTerms/2+1), "more than the 500 terms"},
		{"brackets", strings.Repeat("(", MaxDepth) + "true" + strings.Repeat(")", MaxDepth), ""},
		{"one bracket more", strings.Repeat("(", MaxDepth+1) + "true" + strings.Repeat(")", MaxDepth+1),
			"position 65: nested deeper than the 64 levels allowed"},
		{"brackets without end", strings.Repeat("(", MaxLength), "nested deeper"},
		{"nots", strings.Repeat("not ", MaxDepth) + "true", ""},
		{"one not more", strings.Repeat("not ", MaxDepth+1) + "true", "nested deeper"},
		{"chained nots", repeat("true and not", " ", MaxDepth+1) + " true", "nested deeper"},
		{"nested sub queries", strings.Repeat("isEmpty(from parts where ", MaxDepth+1), "nested deeper"},
		{"siblings are not nested", repeat("(true)", " and ", MaxTerms), ""},
		{"items", "cost in [" + repeat("1", ",", MaxItems) + "]", ""},
		{"one item more", "cost in [" + repeat("1", ",", MaxItems+1) + "]", "position 2010: more than the 1000 items allowed"},
		{"ids of usual length fit", `id in [` + repeat(`"a1b2c3d4e5f"`, ",", MaxItems) + "]", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Compile(itemSchema, tt.text)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (!fault.Is(err, fault.CodeFilter) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestSortParameterBounds(t *testing.T) {
	_, err := mustCompile(t, "").SortedBy(repeat("id", ",", MaxLength))
	if !fault.Is(err, fault.CodeSort) || !strings.Contains(err.Error(), "more than the 16384 allowed") {
		t.Errorf("got %v", err)
	}
}

func TestNotUTF8(t *testing.T) {
	for text, want := range map[string]string{
		"name = \"a\xffb\"": "position 10: byte 0xff in a string is not UTF-8",
		"name \xff":         "position 6: byte 0xff is not part of the language",
		"name \x00":         `position 6: '\x00' is not part of the language`,
		"\ufeffname":        `position 1: '\ufeff' is not part of the language`,
	} {
		if _, err := Parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x", MaxLength/2)
	for _, text := range []string{
		long, "true " + long, `"` + long + `"`, "sort by tags." + long, "tags." + long + " < ", "anyOf(tags." + long + ") = 1",
		"cost = 1" + strings.Repeat("0", MaxLength/2), "madeAt = datetime(" + strings.Repeat("9", MaxLength/2) + ")",
	} {
		_, err := Compile(itemSchema, text)
		e, ok := errors.AsType[*fault.Error](err)
		if !ok {
			t.Errorf("%s: not refused: %v", text[:20], err)
			continue
		}
		if len(e.Reason) > 250 {
			t.Errorf("%s: a reason of %d bytes", text[:20], len(e.Reason))
		}
	}
}

func TestWhiteSpace(t *testing.T) {
	admin := &item{Admin: new(true), Name: new("x")}
	for _, text := range []string{
		"\t\r\n admin \n", "(admin)", "( admin )", "admin\tand\nadmin", "name=\"x\"", "name  =  \"x\"",
		"name\nnot  contains\t\"y\"", "name not\tin [\"y\"]", "name in [\n\"x\"\t,\"y\" ]", "true  limit\t5 ", "",
	} {
		if q := mustCompile(t, text); !q.Match(admin) {
			t.Errorf("%q does not match", text)
		}
	}
}

func TestKeywordsInAnyCase(t *testing.T) {
	row := &item{ID: "a", Name: new("x"), Cost: new(int64(1)), Roles: []string{"r"}, Parts: []*part{{Name: "p"}}}
	text := `name icontains "X" and name not contains "q" and cost between 1 and 2 and name not in ["q"] and ` +
		`anyof(roles) in ["r"] and allof(roles) = "r" and count(roles) = 1 and isempty(ports) and name != null and ` +
		`count(from parts where name = "p") = 1 and (not false) or false sort by name desc, id asc skip 1 limit none`
	keywords := regexp.MustCompile(`\b(icontains|not|contains|and|between|in|anyof|allof|count|isempty|null|from|where|` +
		`false|or|sort|by|desc|asc|skip|limit|none)\b`)
	for _, cased := range []string{
		text,
		keywords.ReplaceAllStringFunc(text, strings.ToUpper),
		keywords.ReplaceAllStringFunc(text, func(s string) string { return strings.ToUpper(s[:1]) + s[1:] }),
	} {
		q := mustCompile(t, cased)
		if !q.Match(row) || q.Match(&item{}) || len(q.Sort()) != 2 {
			t.Errorf("%s means something else", cased)
		}
	}
}

func TestTreeString(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"a and b or c":                        "a and b or c",
		"a and (b or c)":                      "a and b or c",
		"(a and b) or c":                      "(a and b) or c",
		"((a) AND ((b AND (c))))":             "a and b and c",
		"(not a) and b":                       "(not a) and b",
		"a and (not b)":                       "a and not b",
		"not (a and b)":                       "not a and b",
		`name="x"`:                            `name = "x"`,
		`name NOT IN ["a" ,"b"]`:              `name not in ["a", "b"]`,
		`s = "\"\\\f\n\r\té"`:                 `s = "\"\\\f\n\r\té"`,
		"x!=NULL or y=TRUE":                   "x != null or y = true",
		"n between 1.50 and -2e+3":            "n between 1.50 and -2e+3",
		"t>=datetime( 2020-01-02t03:04:05z )": "t >= datetime(2020-01-02T03:04:05Z)",
		"t=datetime(2020-01-02T03:04:05.5+01:00)": "t = datetime(2020-01-02T02:04:05.5Z)",
		"anyof( s )icontains 5":                   "anyOf(s) icontains 5",
		"COUNT(FROM s WHERE x limit 3)<2":         "count(from s where x limit 3) < 2",
		"isempty( from s where skip 1 )":          "isEmpty(from s where skip 1)",
		"sort by a asc,b desc skip 3 limit none":  "sort by a, b desc skip 3 limit none",
		"true limit 5":                            "true limit 5",
	} {
		tree, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := tree.String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// needsText shows Needs as choices of index=values.
func needsText(q *Query[*item]) string {
	var choices []string
	for _, choice := range q.Needs() {
		var terms []string
		for _, term := range choice {
			terms = append(terms, fmt.Sprintf("%s=%v", term.Symbol.Index, term.Values))
		}
		choices = append(choices, "{"+strings.Join(terms, " | ")+"}")
	}
	return strings.Join(choices, " ")
}

func TestNeeds(t *testing.T) {
	for text, want := range map[string]string{
		``:                                    ``,
		`true`:                                ``,
		`false`:                               `{}`,
		`name = "x" and false`:                `{}`,
		`name = "x"`:                          `{by-name=[x]}`,
		`name = 5`:                            `{by-name=[5]}`,
		`name != "x"`:                         ``,
		`name = null`:                         ``,
		`name < "x"`:                          ``,
		`label = "x"`:                         ``,
		`tags.name = "x"`:                     ``,
		`name in ["b","a","b"]`:               `{by-name=[a b]}`,
		`name not in ["b"]`:                   ``,
		`not name = "x"`:                      ``,
		`cost = 5.0`:                          `{by-cost=[5]}`,
		`cost in [5.5, 2, 2.0]`:               `{by-cost=[2]}`,
		`cost = 5.5`:                          `{by-cost=[]}`,
		`load = 2`:                            `{by-load=[2]}`,
		`load = 9007199254740993`:             `{by-load=[]}`,
		`load in [0.5, -0.0, 0]`:              `{by-load=[0 0.5]}`,
		`anyOf(roles) = "x"`:                  `{by-role=[x]}`,
		`anyOf(roles) in ["x","y"]`:           `{by-role=[x y]}`,
		`allOf(roles) = "x"`:                  ``,
		`count(roles) = 1`:                    ``,
		`name = "x" and cost = 1`:             `{by-name=[x]} {by-cost=[1]}`,
		`name = "x" and admin`:                `{by-name=[x]}`,
		`name = "x" and admin or cost = 1`:    `{by-name=[x]}`,
		`name = "x" and id = "y" or cost = 1`: `{by-name=[x]} {by-id=[y] | by-cost=[1]}`,
		`id = "x" or name = "x"`:              `{by-id=[x] | by-name=[x]}`,
		`id = "x" or name = "x" or false`:     `{by-id=[x] | by-name=[x]}`,
		`id = "x" or name = "x" or admin`:     ``,
		`(id = "x" or name = "x") and admin`:  `{by-id=[x] | by-name=[x]}`,
		`(id = "x" and admin) or name = "x"`:  `{by-id=[x] | by-name=[x]}`,
		`id = "x" or true`:                    ``,
		`(id="x" or cost=1) and name="y"`:     `{by-id=[x] | by-cost=[1]} {by-name=[y]}`,
		`((id="x" or cost=1) and name="y") or anyOf(roles)="r"`: `{by-name=[y] | by-role=[r]}`,
	} {
		if got := needsText(mustCompile(t, text)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestAll(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "  ": true, "true": true, "limit 5": true, "not false": true, "true and true": true,
		"admin or true": true, "not admin and false": true, "(true) or admin": true,
		"false": false, "admin": false, "true and admin": false, "admin or not admin": false, "not true": false,
	} {
		if got := mustCompile(t, text).All(); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

func TestClauses(t *testing.T) {
	q := mustCompile(t, "true sort by name desc, cost skip 7 limit 3")
	if n, set := q.Skip(); n != 7 || !set {
		t.Errorf("skip %d, %v", n, set)
	}
	if n, none, set := q.Limit(); n != 3 || none || !set {
		t.Errorf("limit %d, %v, %v", n, none, set)
	}
	var orders []string
	for _, o := range q.Sort() {
		orders = append(orders, fmt.Sprint(o.Symbol.Index, " ", o.Desc))
	}
	if diff := cmp.Diff([]string{"by-name true", "by-cost false"}, orders); diff != "" {
		t.Error(diff)
	}
	q = mustCompile(t, "limit none")
	if _, none, set := q.Limit(); !none || !set {
		t.Errorf("limit none: %v, %v", none, set)
	}
	q = mustCompile(t, "")
	if _, set := q.Skip(); set {
		t.Error("skip is set")
	}
	if _, _, set := q.Limit(); set {
		t.Error("limit is set")
	}
	if len(q.Sort()) != 0 {
		t.Error("sort is set")
	}
}

func TestPage(t *testing.T) {
	unlimited := func(offset int64) Page {
		return Page{Limit: math.MaxInt64, Offset: offset, Unlimited: true}
	}
	tests := []struct {
		text          string
		limit, offset *int64
		want          Page
	}{
		{"", nil, nil, Page{Limit: 10}},
		{"", new(int64(3)), new(int64(4)), Page{Limit: 3, Offset: 4}},
		{"", new(int64(0)), nil, Page{Limit: 10}},
		{"", new(int64(-2)), nil, Page{Limit: 10}},
		{"", new(int64(-1)), nil, unlimited(0)},
		{"", new(int64(500)), nil, Page{Limit: 500}},
		{"", new(int64(501)), nil, Page{Limit: 500}},
		{"", new(int64(math.MaxInt64)), nil, Page{Limit: 500}},
		{"", nil, new(int64(-1)), Page{Limit: 10}},
		{"", nil, new(int64(100_000)), Page{Limit: 10, Offset: 100_000}},
		{"", nil, new(int64(100_001)), Page{Limit: 10, Offset: 100_000}},
		{"limit 7", new(int64(3)), new(int64(4)), Page{Limit: 7, Offset: 4}},
		{"skip 7", new(int64(3)), new(int64(4)), Page{Limit: 3, Offset: 7}},
		{"skip 0 limit 0", new(int64(3)), new(int64(4)), Page{Limit: 10}},
		{"skip -5 limit -5", new(int64(3)), new(int64(4)), Page{Limit: 10}},
		{"limit none", new(int64(3)), new(int64(4)), unlimited(4)},
		{"limit -1", new(int64(3)), nil, unlimited(0)},
		{"skip 999999 limit 999999", nil, nil, Page{Limit: 500, Offset: 100_000}},
	}
	for _, tt := range tests {
		if got := mustCompile(t, tt.text).Page(tt.limit, tt.offset); got != tt.want {
			t.Errorf("%q, %v, %v: got %+v, want %+v", tt.text, tt.limit, tt.offset, got, tt.want)
		}
	}
}

func TestSelectKeepsOnlyThePage(t *testing.T) {
	rows := func(yield func(*item) bool) {
		for i := range 10_000 {
			if !yield(&item{ID: fmt.Sprintf("%05d", (i*7919)%10_000)}) {
				return
			}
		}
	}
	got, total := mustCompile(t, "skip 2 limit 3").Select(Rows[*item]{Seq: rows}, Page{Limit: 3, Offset: 2})
	if want := []string{"00002", "00003", "00004"}; !slices.Equal(ids(got), want) || total != 10_000 {
		t.Errorf("got %v of %d", ids(got), total)
	}
	if cap(got) > 8 {
		t.Errorf("room for %d rows was kept", cap(got))
	}
}

func TestSchema(t *testing.T) {
	names := []string{"admin", "cost", "id", "limit", "load", "madeAt", "name", "owner.cost", "parts", "ports", "roles", "tags"}
	if diff := cmp.Diff(names, itemSchema.Names()); diff != "" {
		t.Error(diff)
	}
	if s, ok := itemSchema.Lookup("cost"); !ok || s.Type != Int || s.Index != "by-cost" {
		t.Errorf("cost: %v, %v", s, ok)
	}
	if s, ok := itemSchema.Lookup("tags.x"); ok {
		t.Errorf("tags.x: %v", s)
	}

	text := func(s string) func(*item) Value { return func(*item) Value { return StringValue(s) } }
	more := itemSchema.With(
		Symbol[*item]{Name: "colour", Type: String, One: text("red")},
		Symbol[*item]{Name: "name", Type: String, One: text("other")},
	)
	q, err := Compile(more, `colour = "red" and name = "other"`)
	if err != nil || !q.Match(&item{}) {
		t.Errorf("with more symbols: %v", err)
	}
	if !slices.Contains(more.Names(), "colour") || slices.Contains(itemSchema.Names(), "colour") {
		t.Errorf("names: %v, %v", more.Names(), itemSchema.Names())
	}
	if _, err := Compile(itemSchema, `colour = "red"`); !fault.Is(err, fault.CodeFilter) {
		t.Errorf("without them: %v", err)
	}
}

func TestSchemaPanics(t *testing.T) {
	id := Symbol[int]{Name: "id", Type: Int, One: func(i int) Value { return IntValue(int64(i)) }}
	many := func(int, func(Value) bool) {}
	for name, symbols := range map[string][]Symbol[int]{
		"no id":         {},
		"id is a set":   {{Name: "id", Type: Int, Set: true, Many: many}},
		"twice":         {id, id},
		"no name":       {id, {Type: Int, One: id.One}},
		"no type":       {id, {Name: "x", One: id.One}},
		"no One":        {id, {Name: "x", Type: Int, Many: many}},
		"no Many":       {id, {Name: "x", Type: Int, Set: true, One: id.One}},
		"no Key":        {id, {Name: "x", Type: Map, One: id.One}},
		"a set of maps": {id, {Name: "x", Type: Map, Set: true, Many: many, Key: func(int, string) Value { return Value{} }}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			NewSchema(symbols...)
		})
	}
}

func TestNearNames(t *testing.T) {
	for misspelt, want := range map[string]string{
		"nam": "name", "names": "name", "ADMIN": "admin", "admni": "admin", "made_at": "madeAt",
		"prots": "parts ports", "role": "roles", "is": "", "xyzzy": "", "lable": "", "identity": "",
		strings.Repeat("name", 1000): "",
	} {
		if got := strings.Join(spell.Near(misspelt, itemSchema.names), " "); got != want {
			t.Errorf("%.20s: got %q, want %q", misspelt, got, want)
		}
	}
}

func TestValue(t *testing.T) {
	at := time.Date(2023, 4, 26, 12, 11, 12, 5, time.FixedZone("", 7200))
	for _, tt := range []struct {
		given any
		typ   Type
		text  string
	}{
		{"x", String, "x"}, {int64(-5), Int, "-5"}, {7, Int, "7"}, {2.5, Float, "2.5"}, {1e21, Float, "1000000000000000000000"},
		{true, Bool, "true"}, {at, Time, "2023-04-26T10:11:12.000000005Z"}, {nil, None, "null"}, {[]any{1}, None, "null"},
	} {
		v := AnyValue(tt.given)
		if v.Type() != tt.typ || v.String() != tt.text {
			t.Errorf("%v: got %v %s, want %v %s", tt.given, v.Type(), v, tt.typ, tt.text)
		}
	}
	types := fmt.Sprint(None, String, Int, Float, Bool, Time, Map, Type(99))
	if types != "null string number number bool datetime map type 99" {
		t.Errorf("types: %s", types)
	}
	if v := TimeValue(at); !v.Time().Equal(at) {
		t.Errorf("time: %v", v.Time())
	}
	if IntValue(5).Int() != 5 || FloatValue(2.5).Float() != 2.5 || !BoolValue(true).Bool() || BoolValue(false).Bool() {
		t.Error("a value does not return what it was made of")
	}
}

// TestConcurrentUse is for the race detector: set functions share pools.
func TestConcurrentUse(t *testing.T) {
	q := mustCompile(t, `anyOf(roles) = "x" and count(from parts where isEmpty(roles)) = 1 and allOf(ports) > 1`)
	yes := &item{Roles: []string{"w", "x"}, Ports: []int64{2}, Parts: []*part{{}, {Roles: []string{"r"}}}}
	no := &item{Roles: []string{"w"}}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				if !q.Match(yes) || q.Match(no) {
					t.Error("a query used at once by several goroutines is confused")
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestMatchDoesNotAllocate(t *testing.T) {
	row := &item{
		ID: "a", Name: new("Some-Router-In-Frankfurt"), Cost: new(int64(12345)), Load: new(2.25), Admin: new(true),
		MadeAt: new(time.Date(2023, 1, 2, 3, 4, 5, 6, time.UTC)), Tags: map[string]any{"k": "v"},
	}
	for _, text := range []string{
		`name = "x" or name != "x"`, `name contains "Frank"`, `name icontains "FRANK"`, `name in ["a","b"]`,
		`cost between 1 and 2.5 or cost contains 34`, `load in [1, 2.25] and load contains 25`,
		`madeAt > datetime(2020-01-01T00:00:00Z)`, `tags.k = "v" and tags.x = null`,
	} {
		q := mustCompile(t, text)
		if n := testing.AllocsPerRun(100, func() { q.Match(row) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}
