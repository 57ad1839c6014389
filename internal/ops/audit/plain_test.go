package audit

import (
	"reflect"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// drawEntry draws an entry of which any part may be missing.
func drawEntry(t *rapid.T) *model.AuditEntry {
	text := rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"identity", "Ann", "192.0.2.1", "ü 名", `a "b" \c`, "<&>\u2028\x01"}), rapid.String())
	moment := rapid.Custom(func(t *rapid.T) *time.Time {
		if rapid.Bool().Draw(t, "none") {
			return nil
		}
		at := time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "at")).UTC()
		return &at
	})
	number := rapid.Int64Range(1, 1<<50).Draw(t, "number")
	e := &model.AuditEntry{Number: number, Count: rapid.Int64Range(0, 1<<40).Draw(t, "count"), FirstAt: moment.Draw(t, "first"), LastAt: moment.Draw(t, "last")}
	at := kind.MomentOf(time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "at")))
	e.Meta = kind.Meta{ID: ID(number), CreatedAt: at, UpdatedAt: at}
	e.Outcome = rapid.SampledFrom([]string{model.AuditDone, model.AuditRefused, ""}).Draw(t, "outcome")
	for _, is := range []*string{
		&e.Event, &e.Reason, &e.ControllerID, &e.ActorKind, &e.ActorID, &e.ActorName, &e.APISessionID, &e.Factors, &e.Address,
		&e.Operation, &e.RequestID, &e.TargetKind, &e.TargetID, &e.TargetName, &e.Previous,
	} {
		*is = text.Draw(t, "text")
	}
	object := rapid.SampledFrom([]string{"", `{}`, `{"a":"}\\\"{","b":[1,{"c":null}]}`, `{"name":"ü"}`})
	e.Before, e.After = []byte(object.Draw(t, "before")), []byte(object.Draw(t, "after"))
	e.Withheld = rapid.SampledFrom([][]string{nil, {"password"}}).Draw(t, "withheld")
	e.System = rapid.IntRange(0, 9).Draw(t, "system") == 0
	return e
}

// agree tests that what is read plainly is what columns have of the entry.
func agree(t *rapid.T, p *plain, text []byte) bool {
	if !p.read(text) {
		return false
	}
	entry, err := line{text: text}.entry()
	if err != nil {
		t.Fatalf("%s is read plainly, and not at all: %v", text, err)
	}
	if placed(entry.Number, entry) != placed(entry.Number, &p.entry) || !entry.CreatedAt.Equal(p.entry.CreatedAt) {
		t.Fatalf("%s has another place when it is read plainly", text)
	}
	for _, f := range fields {
		if got, want := f.symbol.One(&p.entry), f.symbol.One(entry); got != want {
			t.Fatalf("%s of %s is %v when it is read plainly, want %v", f.name, text, got, want)
		}
	}
	return true
}

// Whatever an entry says, and whatever somebody has made of it, is what columns have
// of it, with one reader for many.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p plain
		for range 5 {
			text, err := model.AuditEntries.Encode(drawEntry(t))
			if err != nil {
				return // no text
			}
			agree(t, &p, text)
			for range 10 {
				at, sign := rapid.IntRange(0, len(text)-1).Draw(t, "place"), rapid.SampledFrom([]byte("\"\\{}[]:,0- \n\x00\xffn")).Draw(t, "sign")
				agree(t, &p, append(append(append([]byte{}, text[:at]...), sign), text[at+rapid.IntRange(0, 1).Draw(t, "gone"):]...))
				agree(t, &p, text[:at])
			}
		}
	})
}

// An entry is written as its kind has it, whatever it says.
func TestAppendEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawEntry(t)
		switch rapid.IntRange(0, 19).Draw(t, "odd") {
		case 0:
			e.ActorName = "\xff"
		case 1:
			e.Tags = kind.Tags{"a": "b"}
		case 2:
			e.Unknown = new(jsontext.Value(`{"later":1}`))
		case 3:
			e.Meta = kind.Meta{}
		case 4:
			e.Withheld = []string{"", "a\"b", "c"}
		case 5:
			e.FirstAt = new(time.Time)
		case 6:
			e.FirstAt = new(time.Date(12345, 1, 2, 3, 4, 5, 6, time.UTC))
		}
		want, fails := model.AuditEntries.EncodeOwn(e)
		got, err := appendEntry([]byte("before"), e)
		if (err != nil) != (fails != nil) || err == nil && string(got) != "before"+string(want) {
			t.Fatalf("%s (%v), want %s (%v)", got, err, want, fails)
		}
	})
}

// An entry that says all that there is to say is written whole: a field that is new is
// not left out.
func TestAppendEntryHasAll(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	made := kind.MomentOf(at)
	e := &model.AuditEntry{Meta: kind.Meta{ID: ID(5), CreatedAt: made, UpdatedAt: made}}
	for i, v := 1, reflect.ValueOf(e).Elem(); i < v.NumField(); i++ {
		switch field := v.Field(i).Addr().Interface().(type) {
		case *string:
			*field = "text"
		case *int64:
			*field = 7
		case **time.Time:
			*field = &at
		case *jsontext.Value:
			*field = jsontext.Value(`{"name":"a"}`)
		case *[]string:
			*field = []string{"a", "b"}
		default:
			t.Fatalf("how is %s written?", v.Type().Field(i).Name)
		}
	}
	want, err := model.AuditEntries.EncodeOwn(e)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := appendEntry(nil, e); err != nil || string(got) != string(want) {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}

// Entries as they are made are read plainly: packing them costs what that takes.
func TestPlainIsUsual(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	var p plain
	for _, e := range []model.AuditEntry{
		{Event: "updated", Outcome: "done", Count: 1, ActorKind: "identity", ActorID: "ann", ActorName: "Ann Müller", APISessionID: "s", Factors: "password", Address: "192.0.2.1", Operation: "patchIdentity", RequestID: "r", TargetKind: "identity", TargetID: "i", TargetName: "one", Before: []byte(`{"name":"a"}`), After: []byte(`{"name":"b"}`), Previous: "digest"},
		{Event: "login-refused", Outcome: "refused", Reason: "password", Count: 7, FirstAt: &at, LastAt: &at, ControllerID: "c", ActorKind: "anonymous"},
		{Event: "created", Outcome: "done", Count: 1, ActorKind: "program", ActorName: "sessions", TargetKind: "service", TargetID: "web", TargetName: "web", After: []byte(`{"name":"web"}`)},
	} {
		e.Number, e.Meta = 5, kind.Meta{ID: ID(5), CreatedAt: kind.MomentOf(at), UpdatedAt: kind.MomentOf(at)}
		text, err := model.AuditEntries.EncodeOwn(&e)
		if err != nil || !p.read(text) {
			t.Errorf("%s is not read plainly (%v)", text, err)
		}
	}
}
