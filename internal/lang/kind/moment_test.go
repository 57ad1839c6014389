package kind_test

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
)

// event holds moments, and affair is the same with times.
type event struct {
	kind.Meta

	Method string      `json:"method" kind:"enum=none|cert"`
	At     kind.Moment `json:"at"`
	Due    kind.Moment `json:"due" kind:"nullable,when=method:cert"`
	Seen   kind.Moment `json:"seen" kind:"server,omit"`
	Told   kind.Moment `json:"told" kind:"server,secret"`
}

type affair struct {
	kind.Meta

	Method string    `json:"method" kind:"enum=none|cert"`
	At     time.Time `json:"at"`
	Due    time.Time `json:"due" kind:"nullable,when=method:cert"`
	Seen   time.Time `json:"seen" kind:"server,omit"`
	Told   time.Time `json:"told" kind:"server,secret"`
}

var (
	events  = kind.Define(kind.Spec[event]{Name: "event", Path: "events", Doc: "An event."})
	affairs = kind.Define(kind.Spec[affair]{Name: "event", Path: "events", Doc: "An event."})
)

var (
	genNear = rapid.Custom(func(t *rapid.T) time.Time { // from 1900 until 2170
		return time.Unix(rapid.Int64Range(-2_208_988_800, 6_311_000_000).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
	genFar = rapid.Custom(func(t *rapid.T) time.Time { // whatever a date-time can say, to the microsecond
		return time.Unix(rapid.Int64Range(-62_167_219_200, 253_402_300_799).Draw(t, "s"), 1000*rapid.Int64Range(0, 999_999).Draw(t, "us")).UTC()
	})
	genKept = rapid.OneOf(genNear, genFar, rapid.SampledFrom([]time.Time{
		{}, time.Unix(0, 0).UTC(), date(0, 1, 1), date(0, 12, 31), date(1, 1, 2), date(1899, 12, 31), date(1900, 1, 1), date(2172, 3, 15), date(2172, 3, 16), date(2172, 3, 17), date(9999, 12, 31),
	}))
)

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// TestMoment shows that a moment is the time that it is of, and in the same order.
func TestMoment(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genKept.Draw(t, "a"), genKept.Draw(t, "b")
		m, n := kind.MomentOf(a), kind.MomentOf(b)
		if m.Time() != a || m.IsZero() != a.IsZero() || m.String() != a.String() || m != kind.MomentOf(a.In(time.FixedZone("", 7200))) {
			t.Errorf("of %v it is %v", a, m)
		}
		if m.Compare(n) != a.Compare(b) || m.Before(n) != a.Before(b) || m.After(n) != a.After(b) || m.Equal(n) != a.Equal(b) {
			t.Errorf("%v and %v are in another order as moments", a, b)
		}
	})
}

// What is JSON without being a kind's has moments as it has times.
func TestMomentJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := genKept.Draw(t, "at")
		plain, bad := json.Marshal(at)
		text, err := json.Marshal(kind.MomentOf(at))
		if err != nil || bad != nil || string(text) != string(plain) {
			t.Fatalf("written as %s, and not %s: %v, %v", text, plain, err, bad)
		}
		var again kind.Moment
		if err := json.Unmarshal(text, &again); err != nil || again.Time() != at {
			t.Errorf("%s is read as %v: %v", text, again, err)
		}
	})
	var none kind.Moment
	if json.Unmarshal([]byte(`"later"`), &none) == nil {
		t.Errorf("a word is read as %v", none)
	}
}

// Of times that are farther away, or finer, than what it holds, it is the nearest that it does.
func TestMomentNearest(t *testing.T) {
	first, last := date(0, 1, 1), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	for _, test := range []struct{ of, want time.Time }{
		{first.Add(-1), first},
		{date(-1, 12, 31), first},
		{date(-292_277_022_398, 1, 1), first},
		{time.Unix(-1<<62, 0), first},
		{last.Add(999), last},
		{date(10_000, 1, 1), last},
		{date(292_277_024_626, 1, 1), last},
		{time.Unix(1<<62, 0), last},
		{date(1700, 1, 1).Add(1999), date(1700, 1, 1).Add(1000)},
		{date(2500, 1, 1).Add(1999), date(2500, 1, 1).Add(1000)},
		{date(0, 5, 5).Add(1999), date(0, 5, 5).Add(1000)},
	} {
		if got := kind.MomentOf(test.of).Time(); got != test.want {
			t.Errorf("of %v it is %v, want %v", test.of, got, test.want)
		}
	}
}

// TestMomentField shows that a field with moments is stored, read, copied, shown, compared and
// found as one with times is.
func TestMomentField(t *testing.T) {
	draw := func(t *rapid.T) (*event, *affair) {
		e, a := new(event), new(affair)
		e.ID, a.ID = "e1", "e1"
		e.Method = rapid.SampledFrom([]string{"none", "cert"}).Draw(t, "method")
		a.Method = e.Method
		for moment, at := range map[*kind.Moment]*time.Time{&e.At: &a.At, &e.Due: &a.Due, &e.Seen: &a.Seen, &e.Told: &a.Told} {
			*at = genKept.Draw(t, "time")
			*moment = kind.MomentOf(*at)
		}
		return e, a
	}
	rapid.Check(t, func(t *rapid.T) {
		e, a := draw(t)
		stored, err := events.Encode(e)
		plain, bad := affairs.Encode(a)
		if err != nil || bad != nil || string(stored) != string(plain) {
			t.Fatalf("stored as %s, and not %s: %v, %v", stored, plain, err, bad)
		}
		again, err := events.Decode(stored)
		if err != nil || !reflect.DeepEqual(again, kind.Record(e)) || !reflect.DeepEqual(events.Clone(e), kind.Record(e)) {
			t.Errorf("read as %+v, and not %+v: %v", again, e, err)
		}
		if got, want := appendAll(nil, shop.Columns(events.Def), world{}, e), appendAll(nil, shop.Columns(affairs.Def), world{}, a); string(got) != string(want) {
			t.Errorf("shown as %s, and not %s", got, want)
		}
		for _, name := range []string{"at", "due", "seen"} {
			symbol, ok := events.Symbols.Lookup(name)
			other, is := affairs.Symbols.Lookup(name)
			if !ok || !is || symbol.Type != other.Type || symbol.One(e) != other.One(a) || symbol.Fine(e) != other.Fine(a) {
				t.Errorf("filters see another %s", name)
			}
		}
		before, was := draw(t)
		got, err := events.Delta(before, e)
		want, bad := affairs.Delta(was, a)
		if err != nil || bad != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("differs by %v, and not by %v: %v, %v", got, want, err, bad)
		}
		if got, want := events.Differences(before, e), affairs.Differences(was, a); !reflect.DeepEqual(got, want) {
			t.Errorf("differs in %v, and not in %v", got, want)
		}
	})
}

// Bodies set a moment as they set a time.
func TestMomentInBody(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"method":"cert","due":null}`, `{"method":"none","due":"2026-01-01T00:00:00Z"}`,
		`{"method":"cert","at":"1969-12-31T23:59:59.999999999Z","due":"2026-01-02T03:04:05.678901234+02:00"}`,
		`{"at":"0001-01-01T00:00:00Z"}`, `{"at":"9999-12-31T23:59:59"}`, `{"at":"0000-01-01T00:00:00+23:59"}`, `{"at":7}`,
	} {
		for _, shape := range shapes {
			e, a := &event{At: kind.MomentOf(date(2020, 1, 1))}, &affair{At: date(2020, 1, 1)}
			err, bad := events.Apply(shape, e, read(t, text)), affairs.Apply(shape, a, read(t, text))
			if (err == nil) != (bad == nil) || err != nil && err.Error() != bad.Error() || e.At.Time() != a.At || e.Due.Time() != a.Due {
				t.Errorf("%s %s makes %+v of it, and not %+v: %v, %v", shape, text, e, a, err, bad)
			}
		}
	}
}

// What is read of times that an offset leads out of the years that can be written is the
// nearest that can be, and nothing else is taken for a time.
func TestMomentRead(t *testing.T) {
	for text, want := range map[string]string{
		`"0000-01-01T00:00:00+23:59"`:           `{"at":"0000-01-01T00:00:00Z"}`,
		`"9999-12-31T23:59:59.9999999-12:00"`:   `{"at":"9999-12-31T23:59:59.999999Z"}`,
		`"2026-01-02T03:04:05.000000006+02:00"`: `{"at":"2026-01-02T01:04:05.000000006Z"}`,
		`"0001-01-01T00:00:00Z"`:                `{}`,
		`"later"`:                               "decode event: /at holds no time.Time",
		`7`:                                     "decode event: /at holds no time.Time",
	} {
		rec, err := events.Decode([]byte(`{"at":` + text + `}`))
		got := ""
		if err != nil {
			got = err.Error()
		} else if b, err := events.Encode(rec); err == nil {
			got = string(b)
		}
		if got != want {
			t.Errorf("of %s is read %s, want %s", text, got, want)
		}
	}
}

// There are very many records, and each has one.
func TestMetaSize(t *testing.T) {
	if size := unsafe.Sizeof(kind.Meta{}); size > 56 {
		t.Errorf("Meta has %d bytes, want no more than 56", size)
	}
}
