package kind_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

// mark is in every secret of these tests, and must be nowhere else.
const mark = "hush-hush"

// secretNames are those that only secrets have.
var secretNames = []string{"key", "keys", "safe", "door", "lock", "digest", "pin", "pins"}

// TestSecretsStayInside fills all secrets of any record and looks for them in
// all that leaves us.
func TestSecretsStayInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWidget.Draw(t, "widget")
		w.Key, w.Digest, w.Keys = mark, mark, []string{mark}
		w.Safe = safe{
			Code: mark, Door: door{mark}, Log: []part{{Code: mark, Pin: mark, Lot: mark}},
			Tags: kind.Tags{mark: mark}, Pins: map[string]string{mark: mark},
		}
		w.Parts = append(w.Parts, part{Pin: mark})

		if answer := appendAll(nil, columns, world{}, w); strings.Contains(string(answer), mark) {
			t.Errorf("the answer shows a secret: %s", answer)
		}
		for _, name := range widgets.Symbols.Names() {
			s, _ := widgets.Symbols.Lookup(name)
			if got := symbolTexts(s, w); strings.Contains(got, mark) {
				t.Errorf("filters can read a secret through %s: %s", name, got)
			}
		}
		if label := widgets.Label(w); strings.Contains(label, mark) {
			t.Errorf("the label is %q", label)
		}
		if stored := encode(t, w); strings.Count(string(stored), mark) != 13 {
			t.Errorf("secrets are not stored: %s", stored)
		}
	})
}

// symbolTexts is every value that a symbol has.
func symbolTexts(s *filter.Symbol[kind.Record], w *widget) string {
	var all strings.Builder
	switch {
	case s.One != nil:
		all.WriteString(s.One(w).String())
	case s.Many != nil:
		s.Many(w, func(v filter.Value) bool { all.WriteString(v.String()); return true })
	default:
		all.WriteString(s.Key(w, mark).String())
	}
	return all.String()
}

func TestSecretNamesStayInside(t *testing.T) {
	var outside []string
	outside = append(outside, widgets.Symbols.Names()...)
	for _, col := range columns {
		outside = append(outside, col.Name)
		outside = append(outside, string(kind.AppendAny(nil, col.Schema)))
	}
	all := strings.ToLower(strings.Join(outside, " "))
	for _, name := range secretNames {
		// Whole names only: keeper and ping are none of ours.
		for _, quoted := range []string{`"` + name + `"`, " " + name + " ", "." + name} {
			if strings.Contains(all, quoted) {
				t.Errorf("%s is shown in %s", quoted, all)
			}
		}
	}
}

// TestErrorsKeepSecrets sends what does not fit into every secret, and looks
// for it in the error.
func TestErrorsKeepSecrets(t *testing.T) {
	places := []string{
		`"key":%s`, `"keys":%s`, `"keys":[%s]`, `"safe":%s`, `"safe":{"code":%s}`, `"safe":{"door":%s}`, `"safe":{"door":{"lock":%s}}`,
		`"safe":{"log":%s}`, `"safe":{"log":[%s]}`, `"safe":{"log":[{"code":%s}]}`, `"safe":{"log":[{"code":"a","qty":%s}]}`,
		`"safe":{"log":[{"code":"a","pin":%s}]}`, `"safe":{"tags":%s}`, `"safe":{"tags":{"a":%s}}`, `"safe":{"tags":{"` + mark + `":%s}}`,
		`"safe":{"pins":%s}`, `"safe":{"pins":{"a":%s}}`, `"safe":{"pins":{"` + mark + `":%s}}`, `"parts":[{"code":"a","pin":%s}]`,
	}
	genSecret := rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 4).Draw(t, "form") {
		case 0:
			return mark
		case 1:
			return []any{mark}
		case 2:
			return map[string]any{mark: mark}
		case 3:
			return map[string]any{mark: []any{mark}}
		}
		return genJSON.Draw(t, "other")
	})
	refusals := 0
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.SampledFrom(places).Draw(t, "place")
		body := bodyWith(kind.Create, fmt.Sprintf(place, kind.AppendAny(nil, genSecret.Draw(t, "secret"))))
		b, err := kind.ReadBody([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		err = widgets.Apply(kind.Create, new(widget), b)
		f, refused := errors.AsType[*fault.Error](err)
		if !refused {
			return
		}
		refusals++
		if said := fmt.Sprintf("%v %+v", err, *f); strings.Contains(said, mark) || f.Value != nil {
			t.Errorf("%s is refused with %s", body, said)
		}
	})
	if refusals == 0 {
		t.Error("nothing was refused")
	}
}

// TestRulesKeepSecrets does the same for the rules over records.
func TestRulesKeepSecrets(t *testing.T) {
	type vault struct {
		kind.Meta
		Maker string   `json:"maker" kind:"secret,ref=maker:clear"`
		Roles []string `json:"roles" kind:"secret,roles=maker"`
		Owner string   `json:"owner" kind:"secret,unique"`
	}
	d := define[vault]()
	set := kind.NewCatalog(makers.Def, d)
	r := world{d: {"v0": &vault{Meta: kind.Meta{ID: "v0"}, Owner: mark}}}
	for _, v := range []*vault{{Maker: mark}, {Roles: []string{"@" + mark}}, {Owner: mark}} {
		f, ok := errors.AsType[*fault.Error](set.Validate(r, d, nil, v))
		if !ok || strings.Contains(fmt.Sprintf("%+v", *f), mark) {
			t.Errorf("%+v is refused with %+v", v, f)
		}
	}
}
