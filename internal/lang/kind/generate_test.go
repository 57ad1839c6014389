package kind_test

import (
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"netkeep.internal/internal/lang/kind"
)

var (
	genText = rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "a", "é", "\u2028", `"\`, "\x00\x7f", "<&>", "#all", "@x"}))
	genTime = rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(-60_000_000_000, 200_000_000_000).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
	// A pointer to a zero time cannot be stored.
	genSetTime = genTime.Filter(func(t time.Time) bool { return !t.IsZero() })
	genTexts   = rapid.SliceOfN(genText, 0, 3)
	genTags    = rapid.Custom(func(t *rapid.T) kind.Tags {
		return rapid.MapOfN(genText, rapid.OneOf(rapid.Just[any](nil), genText.AsAny(), rapid.Bool().AsAny()), 0, 3).Draw(t, "tags")
	})
	// genJSON is a value as Unmarshal returns it.
	genJSON = rapid.Custom(func(t *rapid.T) any { return drawJSON(t, 2) })
	// genObject is the text of a JSON object.
	genObject = rapid.Custom(func(t *rapid.T) jsontext.Value {
		b, err := json.Marshal(rapid.MapOfN(genText, genJSON, 0, 3).Draw(t, "object"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
	genPart = rapid.Custom(func(t *rapid.T) part {
		return part{genText.Draw(t, "code"), rapid.Int().Draw(t, "qty"), genText.Draw(t, "pin"), genText.Draw(t, "lot")}
	})
	genParts = rapid.SliceOfN(genPart, 0, 2)
)

func drawJSON(t *rapid.T, depth int) any {
	most := 5
	if depth == 0 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return float64(rapid.Int32().Draw(t, "number"))
	case 3:
		return genText.Draw(t, "text")
	case 4:
		list := make([]any, rapid.IntRange(0, 2).Draw(t, "length"))
		for i := range list {
			list[i] = drawJSON(t, depth-1)
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 2).Draw(t, "members") {
		object[genText.Draw(t, "name")] = drawJSON(t, depth-1)
	}
	return object
}

func drawOptional[T any](t *rapid.T, gen *rapid.Generator[T], label string) *T {
	if rapid.Bool().Draw(t, label+" unset") {
		return nil
	}
	v := gen.Draw(t, label)
	return &v
}

// genWidget is any widget that can be in the store, also one that no body
// could make.
var genWidget = rapid.Custom(func(t *rapid.T) *widget {
	text := func(label string) string { return genText.Draw(t, label) }
	w := &widget{
		Meta: kind.Meta{
			ID: text("id"), CreatedAt: kind.MomentOf(genTime.Draw(t, "createdAt")), UpdatedAt: kind.MomentOf(genTime.Draw(t, "updatedAt")),
			Tags: genTags.Draw(t, "tags"), System: rapid.Bool().Draw(t, "system"),
		},
		Name: text("name"), Serial: text("serial"), Owner: text("owner"), Mode: text("mode"), Site: text("site"), Note: text("note"),
		MakerID: text("makerId"), BackupID: text("backupId"), ParentID: text("parentId"),
		Makers: genTexts.Draw(t, "makers"), Colors: genTexts.Draw(t, "colors"), Traits: genTexts.Draw(t, "traits"), Roles: genTexts.Draw(t, "roles"),
		Prices:   rapid.MapOfN(genText, rapid.Int64(), 0, 2).Draw(t, "prices"),
		Grades:   rapid.MapOfN(genText, genText, 0, 2).Draw(t, "grades"),
		Switches: rapid.MapOfN(genText, rapid.Bool(), 0, 2).Draw(t, "switches"),
		Active:   rapid.Bool().Draw(t, "active"), Count: rapid.Int().Draw(t, "count"), Level: rapid.Int32().Draw(t, "level"),
		Made: genTime.Draw(t, "made"), Sold: drawOptional(t, genSetTime, "sold"), Seen: drawOptional(t, genSetTime, "seen"),
		Blob: rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "blob"),
		Size: size{
			Width: rapid.Int().Draw(t, "width"), Unit: text("unit"), Origin: text("origin"), Probe: text("probe"),
			Inner: inner{text("deep"), text("shade")},
		},
		Parts: genParts.Draw(t, "parts"), Key: text("key"), Keys: genTexts.Draw(t, "keys"), Digest: text("digest"),
		Safe: safe{Code: text("code"), Door: door{text("lock")}, Log: genParts.Draw(t, "log"), Tags: genTags.Draw(t, "safe tags")},
		Rank: rapid.Int().Draw(t, "rank"), Type: rapid.SampledFrom([]string{"", "disk", "wheel"}).Draw(t, "type"),
		Bytes: rapid.Int().Draw(t, "bytes"), Spokes: rapid.Int().Draw(t, "spokes"), Tube: tube{text("valve")},
		Gear: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) gear { return gear{genText.Draw(t, "size"), rapid.Int().Draw(t, "teeth")} }), 0, 2).Draw(t, "gear"), Checked: text("checked"),
	}
	if data := drawOptional(t, genObject, "data"); data != nil {
		w.Data = *data
	}
	if rapid.Bool().Draw(t, "box") {
		w.Box = &box{Label: text("label"), Depth: rapid.Int().Draw(t, "depth"), Stamps: genTexts.Draw(t, "stamps")}
	}
	return w
})

// genMembers draws values that bodies may hold, for every member of a widget
// that one may set.
var genMembers = map[string]*rapid.Generator[any]{
	"tags":     genTags.AsAny(),
	"name":     rapid.StringN(1, 8, -1).AsAny(),
	"serial":   genText.AsAny(),
	"owner":    genText.AsAny(),
	"mode":     rapid.SampledFrom([]any{"slow", "fast"}),
	"site":     rapid.SampledFrom([]any{"", "http://a.example", "https://[::1]:80/x?y"}),
	"note":     genText.AsAny(),
	"makerId":  genText.AsAny(),
	"makers":   genTexts.AsAny(),
	"prices":   rapid.MapOfN(genText, rapid.IntRange(0, 99), 0, 2).AsAny(),
	"grades":   rapid.MapOfN(genText, rapid.SampledFrom([]string{"good", "bad"}), 0, 2).AsAny(),
	"switches": rapid.MapOfN(genText, rapid.Bool(), 0, 2).AsAny(),
	"colors":   rapid.SliceOfN(rapid.SampledFrom([]string{"red", "green", "blue"}), 0, 3).AsAny(),
	"traits":   rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,2}`), 0, 3).AsAny(),
	"roles":    rapid.SliceOfN(rapid.StringMatching(`[#@][b-z]{1,2}`), 0, 3).AsAny(),
	"active":   rapid.Bool().AsAny(),
	"count":    rapid.IntRange(-5, 5).AsAny(),
	"level":    rapid.Int32().AsAny(),
	"made":     genTime.AsAny(),
	"sold":     genSetTime.AsAny(),
	"blob":     rapid.SliceOfN(rapid.Byte(), 0, 4).AsAny(),
	"data":     rapid.MapOfN(genText, genJSON, 0, 2).AsAny(),
	"size": rapid.Custom(func(t *rapid.T) any {
		return drawSome(t, map[string]*rapid.Generator[any]{
			"width": rapid.IntRange(1, 100).AsAny(), "unit": rapid.SampledFrom([]any{"mm", "cm"}), "origin": genText.AsAny(),
			"inner": rapid.Custom(func(t *rapid.T) any { return drawSome(t, map[string]*rapid.Generator[any]{"deep": genText.AsAny()}) }),
		})
	}),
	"box": rapid.Custom(func(t *rapid.T) any {
		return drawSome(t, map[string]*rapid.Generator[any]{
			"label": rapid.StringN(1, 5, -1).AsAny(), "depth": rapid.Int32().AsAny(), "stamps": genTexts.AsAny(),
		})
	}),
	"parts": rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any {
		return map[string]any{"code": rapid.StringN(1, 4, -1).Draw(t, "code"), "qty": rapid.Int32().Draw(t, "qty"), "pin": "0000"}
	}), 0, 3).AsAny(),
	"key":    rapid.StringN(3, 6, -1).AsAny(),
	"type":   rapid.SampledFrom([]any{"disk", "wheel"}),
	"bytes":  rapid.Int32().AsAny(),
	"spokes": rapid.Int32().AsAny(),
	"tube":   rapid.Just[any](map[string]any{"valve": "v"}),
}

// drawSome draws an object with some of the members, some of them null.
func drawSome(t *rapid.T, gens map[string]*rapid.Generator[any]) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(gens)) {
		switch rapid.IntRange(0, 5).Draw(t, name) {
		case 0, 1, 2:
		case 3:
			object[name] = nil
		default:
			object[name] = gens[name].Draw(t, name)
		}
	}
	return object
}

// drawBody draws a body of a shape that has what the shape requires.
func drawBody(t *rapid.T, shape kind.Shape) map[string]any {
	body := drawSome(t, genMembers)
	required := map[kind.Shape][]string{kind.Create: {"name", "serial"}, kind.Replace: {"name", "count"}, kind.Patch: {"note"}}
	for _, name := range required[shape] {
		body[name] = genMembers[name].Draw(t, "required "+name)
	}
	return body
}
