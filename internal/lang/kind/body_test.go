package kind_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

var shapes = []kind.Shape{kind.Create, kind.Replace, kind.Patch}

// bodyWith is the least body of a shape with further members.
func bodyWith(shape kind.Shape, more string) string {
	least := map[kind.Shape]string{
		kind.Create: `"name":"w1","serial":"s1"`, kind.Replace: `"name":"w1","count":1`, kind.Patch: `"note":"x"`,
	}[shape]
	if more != "" {
		more = "," + more
	}
	return "{" + least + more + "}"
}

// start is the record that a body of the shape is applied to.
func start(t testing.TB, shape kind.Shape) *widget {
	if shape == kind.Create {
		return new(widget)
	}
	return create(t, full)
}

// applied returns what a body makes of a record.
func applied(t testing.TB, shape kind.Shape, body string) *widget {
	t.Helper()
	w := start(t, shape)
	if err := widgets.Apply(shape, w, read(t, body)); err != nil {
		t.Fatalf("%s %s: %v", shape, body, err)
	}
	return w
}

// refused checks that a body of the shape fails in one field, and how.
func refused(t *testing.T, shape kind.Shape, body string, code fault.Code, field string) *fault.Error {
	t.Helper()
	err := widgets.Apply(shape, start(t, shape), read(t, body))
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code || f.Field != field {
		t.Errorf("%s %s: got %v (%+v), want %s in field %q", shape, body, err, f, code, field)
		return new(fault.Error)
	}
	return f
}

// member returns the JSON of a part of a record, named by a dotted path.
func member(t testing.TB, w *widget, path string) string {
	t.Helper()
	raw, err := json.Marshal(w, json.Deterministic(true), jsontext.PreserveRawStrings(true))
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(path, ".") {
		var members map[string]jsontext.Value
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatalf("%s of %s: %v", path, raw, err)
		}
		raw = members[name]
	}
	return string(raw)
}

// forms is values of every form, and what becomes of them.
var forms = []struct {
	field string
	value string // to send
	want  string // what becomes of it; the value if empty
	reset string // what becomes of nothing
	wrong string // values of the wrong type, by spaces
}{
	{field: "owner", value: `"bob"`, reset: `""`, wrong: `1 true [] {}`},
	{field: "mode", value: `"slow"`, reset: `"slow"`, wrong: `1 true [] {}`},
	{field: "site", value: `"http://b.example"`, reset: `""`, wrong: `1 true [] {}`},
	{field: "key", value: `"abc"`, reset: `""`, wrong: `1 true [] {}`},
	{field: "active", value: `true`, reset: `true`, wrong: `"true" 0 [] {}`},
	{field: "active", value: `false`, reset: `true`, wrong: `"false"`},
	{field: "level", value: `-4`, reset: `3`, wrong: `"1" 1.5 1.0 1e2 true [] {} 2147483648 -2147483649`},
	{field: "made", value: `"2020-01-02T03:04:05Z"`, reset: `"0001-01-01T00:00:00Z"`,
		wrong: `"" "yesterday" "2020-01-02" "2020-13-02T03:04:05Z" "2020-01-02T03:04:05+01:00Z" "9999-12-31T23:59:59-12:00" "0000-01-01T00:00:00+12:00" 1 true [] {}`},
	{field: "made", value: `"2020-01-02T03:04:05.123456789+02:00"`, want: `"2020-01-02T01:04:05.123456789Z"`, reset: `"0001-01-01T00:00:00Z"`},
	{field: "made", value: `"2020-01-02T03:04:05.5"`, want: `"2020-01-02T03:04:05.5Z"`, reset: `"0001-01-01T00:00:00Z"`},
	{field: "made", value: `"0001-01-01T00:00:00Z"`, reset: `"0001-01-01T00:00:00Z"`},
	{field: "sold", value: `"0001-01-01T00:00:00Z"`, want: `null`, reset: `null`},
	{field: "sold", value: `"2020-01-02T03:04:05Z"`, reset: `null`, wrong: `"" "x" 1 true [] {}`},
	{field: "blob", value: `"BAU="`, reset: `""`, wrong: `"BAU" "#" 1 true [1] {}`},
	{field: "colors", value: `["green"]`, reset: `[]`, wrong: `"red" 1 true {} ["red",null] [1] [["red"]]`},
	{field: "colors", value: `[]`, reset: `[]`},
	{field: "traits", value: `["b","a","b"]`, want: `["a","b"]`, reset: `[]`, wrong: `"a" 1 true {} [null]`},
	{field: "roles", value: `["#b","@a","#b"]`, want: `["#b","@a"]`, reset: `[]`, wrong: `"#a" 1 true {} [null]`},
	{field: "makers", value: `["b","a","b"]`, reset: `[]`, wrong: `"a" 1 true {} [null]`},
	{field: "prices", value: `{"m3":7}`, reset: `{}`, wrong: `"x" 1 true []`},
	{field: "grades", value: `{"b":"bad","a":"good"}`, want: `{"a":"good","b":"bad"}`, reset: `{}`, wrong: `"x" 1 true []`},
	{field: "switches", value: `{"a":false}`, reset: `{}`, wrong: `"x" 1 true []`},
	{field: "tags", value: `{"x":null,"y":"z","w":false}`, want: `{"w":false,"x":null,"y":"z"}`, reset: `{}`, wrong: `"x" 1 true []`},
	{field: "data", value: `{"b":{"z":9223372036854775807,"a":1.50}}`, reset: `null`, wrong: `"x" 1 true []`},
	{field: "box", value: `{"label":"z","depth":1,"stamps":["s"]}`, reset: `null`, wrong: `"x" 1 true []`},
	{field: "parts", value: `[{"code":"z"}]`, want: `[{"code":"z","qty":1,"pin":"","lot":""}]`, reset: `[]`, wrong: `"x" 1 true {}`},
}

// TestForms sends every form in every shape: absent, null, a value, and
// values of other types.
func TestForms(t *testing.T) {
	for _, tt := range forms {
		if tt.want == "" {
			tt.want = tt.value
		}
		before := member(t, create(t, full), tt.field)
		for _, shape := range shapes {
			t.Run(fmt.Sprintf("%s %s %s", tt.field, tt.value, shape), func(t *testing.T) {
				absent, null, value := tt.reset, tt.reset, tt.want
				if shape == kind.Patch {
					absent = before
					null = before // which never clears
				}
				for sent, want := range map[string]string{
					"": absent, `"` + tt.field + `":null`: null, `"` + tt.field + `":` + tt.value: value,
				} {
					w := applied(t, shape, bodyWith(shape, sent))
					if got := member(t, w, tt.field); got != want {
						t.Errorf("after %q got %s, want %s", sent, got, want)
					}
				}
				for wrong := range strings.FieldsSeq(tt.wrong) {
					refused(t, shape, bodyWith(shape, `"`+tt.field+`":`+wrong), fault.CodeBody, tt.field)
				}
			})
		}
	}
}

// TestStructs does the same for a struct that is always there.
func TestStructs(t *testing.T) {
	for _, shape := range shapes {
		origin, deep, unit, width := "o", "d", "cm", 10
		switch shape {
		case kind.Create:
			origin, deep, unit, width = "", "", "mm", 0
		case kind.Replace:
			deep, unit, width = "", "mm", 0
		}
		for _, nothing := range []string{"", `"size":null`} {
			s := applied(t, shape, bodyWith(shape, nothing)).Size
			if s.Width != width || s.Unit != unit || s.Origin != origin || s.Inner.Deep != deep {
				t.Errorf("%s with %q made %+v", shape, nothing, s)
			}
		}
		s := applied(t, shape, bodyWith(shape, `"size":{"width":7}`)).Size
		if s.Width != 7 || s.Unit != unit || s.Origin != origin || s.Inner.Deep != deep {
			t.Errorf("%s with a width made %+v", shape, s)
		}
		for _, wrong := range []string{`"x"`, `1`, `true`, `[]`} {
			refused(t, shape, bodyWith(shape, `"size":`+wrong), fault.CodeBody, "size")
		}
	}
}

func TestRequired(t *testing.T) {
	members := map[string]string{"name": `"w1"`, "serial": `"s1"`, "count": `1`, "note": `"n"`}
	required := map[kind.Shape][]string{
		kind.Create: {"name", "serial"}, kind.Replace: {"name", "count"}, kind.Patch: {"note"},
	}
	for _, shape := range shapes {
		for _, without := range required[shape] {
			var rest []string
			for name, value := range members {
				if name != without {
					rest = append(rest, `"`+name+`":`+value)
				}
			}
			body := strings.Join(rest, ",")
			for _, body := range []string{body, body + `,"` + without + `":null`} {
				f := refused(t, shape, "{"+body+"}", fault.CodeInvalid, without)
				if f.Reason != "is required" {
					t.Errorf("reason %q", f.Reason)
				}
			}
		}
		var least []string
		for _, name := range required[shape] {
			least = append(least, `"`+name+`":`+members[name])
		}
		applied(t, shape, "{"+strings.Join(least, ",")+"}")
	}
}

// TestRequiredNullable shows that a required member may be null if answers
// may be.
func TestRequiredNullable(t *testing.T) {
	type form struct {
		Name string `json:"name" kind:"required,nullable"`
	}
	in := kind.NewInput[form]()
	if _, err := in.Read(read(t, `{"name":null}`)); err != nil {
		t.Error(err)
	}
	if _, err := in.Read(read(t, `{}`)); !fault.Is(err, fault.CodeInvalid) {
		t.Errorf("got %v for an absent member", err)
	}
}

func TestFixedAndServer(t *testing.T) {
	const all = `"serial":"new","seen":"2020-01-01T00:00:00Z","digest":"d","rank":9,"id":"x","isSystem":true,
		"createdAt":"2020-01-01T00:00:00Z","size":{"width":1,"origin":"new","probe":"p"}`
	for _, shape := range shapes {
		w := start(t, shape)
		w.ID, w.Digest, w.Size.Probe = "w7", "kept", "kept"
		body := strings.Replace(bodyWith(shape, all), `"serial":"s1",`, "", 1)
		if err := widgets.Apply(shape, w, read(t, body)); err != nil {
			t.Fatal(err)
		}
		serial, origin := "s9", "o"
		if shape == kind.Create {
			serial, origin = "new", "new"
		}
		if w.Serial != serial || w.Size.Origin != origin {
			t.Errorf("%s: fixed fields are %q and %q, want %q and %q", shape, w.Serial, w.Size.Origin, serial, origin)
		}
		if w.ID != "w7" || w.Digest != "kept" || w.Size.Probe != "kept" || w.Seen != nil || w.Rank != 0 || w.System || !w.CreatedAt.IsZero() {
			t.Errorf("%s: a body set a server field: %+v", shape, w)
		}
	}
}

// TestRepeated shows that a fixed field which bodies repeat is checked in each
// and set by create alone.
func TestRepeated(t *testing.T) {
	type crate struct {
		kind.Meta
		Wood string `json:"wood" kind:"required,fixed,repeated,enum=oak|ash"`
		Size int    `json:"size" kind:"required=create,fixed,repeated"`
	}
	crates := kind.Define(kind.Spec[crate]{Name: "crate", Path: "crates", Doc: "What things come in."})
	for _, shape := range shapes {
		c := &crate{Wood: "oak", Size: 1}
		if err := crates.Apply(shape, c, read(t, `{"wood":"ash","size":2}`)); err != nil {
			t.Fatal(err)
		}
		if created := shape == kind.Create; (c.Wood == "ash") != created || (c.Size == 2) != created {
			t.Errorf("%s: the crate is %+v", shape, c)
		}
		for body, field := range map[string]string{`{"wood":1,"size":2}`: "wood", `{"wood":"ash","size":"big"}`: "size", `{"wood":"fir","size":2}`: "wood"} {
			err, ok := errors.AsType[*fault.Error](crates.Apply(shape, c, read(t, body)))
			if !ok || err.Field != field {
				t.Errorf("%s: got %v for %s", shape, err, body)
			}
		}
		if err := crates.Apply(shape, c, read(t, `{"size":2}`)); (err == nil) != (shape == kind.Patch) {
			t.Errorf("%s: got %v without the wood", shape, err)
		}
		if err := crates.Apply(shape, c, read(t, `{"wood":"ash"}`)); (err == nil) != (shape != kind.Create) {
			t.Errorf("%s: got %v without the size", shape, err)
		}
		if props := crates.BodySchema(shape)["properties"].(kind.Schema); props["wood"] == nil || props["size"] == nil {
			t.Errorf("%s: the schema is %v", shape, props)
		}
	}
}

// TestServerMembersSurvive shows that a replace without a struct resets only
// what bodies may set in it.
func TestServerMembersSurvive(t *testing.T) {
	w := create(t, full)
	w.Size.Probe = "kept"
	if err := widgets.Apply(kind.Replace, w, read(t, bodyWith(kind.Replace, ""))); err != nil {
		t.Fatal(err)
	}
	if want := (size{Unit: "mm", Origin: "o", Probe: "kept"}); w.Size != want {
		t.Errorf("got %+v, want %+v", w.Size, want)
	}
}

func TestDefaults(t *testing.T) {
	for _, shape := range shapes {
		w := applied(t, shape, bodyWith(shape, `"mode":"","size":{"width":1,"unit":""}`))
		if w.Mode != "slow" || w.Size.Unit != "mm" {
			t.Errorf("%s: an empty text became %q and %q", shape, w.Mode, w.Size.Unit)
		}
	}
}

func TestKeep(t *testing.T) {
	for sent, want := range map[string]string{``: "wheel", `"type":null`: "wheel", `"type":"disk","bytes":1`: "disk"} {
		if got := applied(t, kind.Replace, bodyWith(kind.Replace, sent)).Type; got != want {
			t.Errorf("after a replace with %q the type is %q, want %q", sent, got, want)
		}
	}
	if got := applied(t, kind.Create, minimal).Type; got != "" {
		t.Errorf("created with type %q", got)
	}
}

func TestVariants(t *testing.T) {
	disk := create(t, `{"name":"d","serial":"s","type":"disk","bytes":5,"spokes":"not even a number","tube":{"valve":"v"}}`)
	if disk.Bytes != 5 || disk.Spokes != 0 || disk.Tube.Valve != "" {
		t.Errorf("a disk has %d bytes, %d spokes and tube %+v", disk.Bytes, disk.Spokes, disk.Tube)
	}
	wheel := create(t, `{"name":"w","serial":"s","type":"wheel","bytes":5,"tube":{"valve":"v"}}`)
	if wheel.Bytes != 0 || wheel.Spokes != 8 || wheel.Tube.Valve != "v" {
		t.Errorf("a wheel has %d bytes, %d spokes and tube %+v", wheel.Bytes, wheel.Spokes, wheel.Tube)
	}
	refused(t, kind.Create, `{"name":"d","serial":"s","type":"disk"}`, fault.CodeInvalid, "bytes")
	refused(t, kind.Create, `{"name":"d","serial":"s","type":"wheel","tube":{"valve":1}}`, fault.CodeBody, "tube.valve")

	// A change of the variant takes what the old one had, our own values too.
	wheel.Checked = "today"
	if err := widgets.Apply(kind.Patch, wheel, read(t, `{"note":"n","type":"disk","bytes":9}`)); err != nil {
		t.Fatal(err)
	}
	if wheel.Bytes != 9 || wheel.Spokes != 0 || wheel.Tube.Valve != "" || wheel.Checked != "" {
		t.Errorf("the new disk is %+v", wheel)
	}
}

// TestNestedVariants shows that a struct can have variants too, and that what
// a struct has not, its members have not.
func TestNestedVariants(t *testing.T) {
	type drive struct {
		Type  string `json:"type" kind:"enum=disk|tape,default=disk"`
		Speed int    `json:"speed" kind:"when=type:disk,default=7,range=5.."`
		Reel  string `json:"reel" kind:"when=type:tape,default=big"`
	}
	type machine struct {
		kind.Meta
		Name  string   `json:"name"`
		Drive drive    `json:"drive" kind:"when=name:box"`
		Roles []string `json:"roles" kind:"roles=maker,omit"`
	}
	d := define[machine]()
	speed, _ := d.Symbols.Lookup("drive.speed")
	cols := kind.NewCatalog(makers.Def, d).Columns(d)
	for body, want := range map[string]struct {
		drive  drive
		answer string
		speed  filter.Value
	}{
		`{"name":"box"}`: {drive{"disk", 7, ""}, `"drive":{"type":"disk","speed":7}`, filter.IntValue(7)},
		`{"name":"box","drive":{"type":"tape"},"roles":[]}`: {drive{"tape", 0, "big"}, `"drive":{"type":"tape","reel":"big"}`, filter.Value{}},
		`{"name":"bag","drive":{"type":"tape"}}`:            {drive{}, `"name":"bag"`, filter.Value{}},
	} {
		m := new(machine)
		if err := d.Apply(kind.Create, m, read(t, body)); err != nil {
			t.Fatal(err)
		}
		if m.Drive != want.drive || speed.One(m) != want.speed {
			t.Errorf("%s made %+v with speed %v", body, m.Drive, speed.One(m))
		}
		if got := string(appendAll(nil, cols, world{}, m)); !strings.HasSuffix(got, want.answer+"}") {
			t.Errorf("%s is shown as %s", body, got)
		}
	}
	err := d.Apply(kind.Create, new(machine), read(t, `{"name":"box","drive":{"speed":4}}`))
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Field != "drive.speed" || f.Reason != "must be at least 5" {
		t.Errorf("got %v", err)
	}
}

func TestErrorPaths(t *testing.T) {
	tests := []struct {
		more  string
		code  fault.Code
		field string
	}{
		{`"size":{"unit":"cm"}`, fault.CodeInvalid, "size.width"},
		{`"size":{"width":"1"}`, fault.CodeBody, "size.width"},
		{`"size":{"width":0}`, fault.CodeInvalid, "size.width"},
		{`"size":{"width":1,"inner":7}`, fault.CodeBody, "size.inner"},
		{`"size":{"width":1,"inner":{"deep":7}}`, fault.CodeBody, "size.inner.deep"},
		{`"box":{"label":"123456"}`, fault.CodeInvalid, "box.label"},
		{`"box":{"label":"1","stamps":[1]}`, fault.CodeBody, "box.stamps"},
		{`"parts":[{"code":"a"},{}]`, fault.CodeInvalid, "parts.1.code"},
		{`"parts":[{"code":"a"},null]`, fault.CodeBody, "parts.1"},
		{`"parts":[{"code":"a","qty":"1"}]`, fault.CodeBody, "parts.0.qty"},
		{`"parts":[{"code":"a","pin":"1"}]`, fault.CodeInvalid, "parts.0.pin"},
		{`"parts":[{"code":"a"},{"code":"a"},{"code":"a"},{"code":"a"}]`, fault.CodeInvalid, "parts"},
		{`"prices":{"a":1,"b":"2"}`, fault.CodeBody, "prices.b"},
		{`"prices":{"a":1,"b":null}`, fault.CodeBody, "prices.b"},
		{`"prices":{"a":1,"b":100}`, fault.CodeInvalid, "prices.b"},
		{`"prices":{"a":-1,"b":100}`, fault.CodeInvalid, "prices.a"},
		{`"grades":{"a":"ugly"}`, fault.CodeInvalid, "grades.a"},
		{`"switches":{"a":"true"}`, fault.CodeBody, "switches.a"},
		{`"colors":["red","pink"]`, fault.CodeInvalid, "colors.1"},
		{`"colors":["red","red","red","red"]`, fault.CodeInvalid, "colors"},
		{`"tags":{"a":1}`, fault.CodeInvalid, "tags.a"},
		{`"tags":{"a":{}}`, fault.CodeInvalid, "tags.a"},
		{`"tags":{"b":[],"a":"x"}`, fault.CodeInvalid, "tags.b"},
		{`"traits":["a","#b"]`, fault.CodeInvalid, "traits"},
		{`"traits":["a","@b"]`, fault.CodeInvalid, "traits"},
		{`"traits":[""]`, fault.CodeInvalid, "traits"},
		{`"roles":["a"]`, fault.CodeInvalid, "roles"},
		{`"roles":["#"]`, fault.CodeInvalid, "roles"},
		{`"roles":[""]`, fault.CodeInvalid, "roles"},
		{`"roles":["#a","#all"]`, fault.CodeInvalid, "roles"},
		{`"roles":["#all","@x"]`, fault.CodeInvalid, "roles"},
		{`"mode":"medium"`, fault.CodeInvalid, "mode"},
		{`"mode":"Slow"`, fault.CodeInvalid, "mode"},
		{`"site":"a.example/x"`, fault.CodeInvalid, "site"},
		{`"site":"ftp://a.example"`, fault.CodeInvalid, "site"},
		{`"site":"http://:80"`, fault.CodeInvalid, "site"},
		{`"safe":{"door":{"lock":"no uri"}}`, fault.CodeInvalid, "safe.door.lock"},
		{`"count":6`, fault.CodeInvalid, "count"},
		{`"count":-6`, fault.CodeInvalid, "count"},
		{`"blob":"AQIDBAU="`, fault.CodeInvalid, "blob"},
		{`"key":"12"`, fault.CodeInvalid, "key"},
	}
	for _, tt := range tests {
		refused(t, kind.Create, bodyWith(kind.Create, tt.more), tt.code, tt.field)
	}
	for _, fine := range []string{`"roles":["#all"]`, `"roles":["#all","#all"]`, `"site":""`, `"count":-5`, `"grades":{}`} {
		applied(t, kind.Create, bodyWith(kind.Create, fine))
	}
}

// TestErrorValues shows that a failure repeats what was wrong.
func TestErrorValues(t *testing.T) {
	f := refused(t, kind.Create, bodyWith(kind.Create, `"grades":{"a":"ugly"}`), fault.CodeInvalid, "grades.a")
	if f.Value != "ugly" || f.Reason != "must be one of good, bad" {
		t.Errorf("got %v, %q", f.Value, f.Reason)
	}
	f = refused(t, kind.Create, bodyWith(kind.Create, `"count":9`), fault.CodeInvalid, "count")
	if f.Value != 9 || f.Reason != "must be -5 to 5" {
		t.Errorf("got %v, %q", f.Value, f.Reason)
	}
}

func TestLengthsInCharacters(t *testing.T) {
	for _, name := range []string{"éééééééé", "世世世世世世世世", "🙂🙂🙂🙂🙂🙂🙂🙂"} {
		if got := create(t, `{"serial":"s","name":"`+name+`"}`).Name; got != name {
			t.Errorf("got %q", got)
		}
		refused(t, kind.Create, `{"serial":"s","name":"`+name+`x"}`, fault.CodeInvalid, "name")
	}
	refused(t, kind.Create, `{"serial":"s","name":""}`, fault.CodeInvalid, "name")
}

func TestUnknownMembersAreIgnored(t *testing.T) {
	plain := create(t, minimal)
	for _, more := range []string{`"color":"red"`, `"ownr":"eve"`, `"unknown":{"a":[1]}`, `"":0`} {
		w := create(t, bodyWith(kind.Create, more))
		if got, want := string(encode(t, w)), string(encode(t, plain)); got != want {
			t.Errorf("with %s got %s, want %s", more, got, want)
		}
	}
}
