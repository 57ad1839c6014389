package console

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
)

// value is something that a page shows, in the way that templates show it.
type value struct {
	Text  string
	Href  string // of what the text is the name of
	Time  string // for machines, if it is a moment
	Mark  string // yes or no
	Code  string // text to be shown as it is, over several lines
	Tag   bool   // whether it is one of several words
	Items []value
}

// Empty reports whether there is nothing to show.
func (v value) Empty() bool {
	return v.Text == "" && v.Mark == "" && v.Code == "" && len(v.Items) == 0
}

// reading turns JSON into what a page shows.
type reading struct {
	console *Console
	names   map[string]string // of records, by id
	short   bool              // whether it is for a cell of a table
}

// of is a value of any member.
func (r reading) of(raw jsontext.Value) value {
	switch raw.Kind() {
	case '"':
		var text string
		_ = json.Unmarshal(raw, &text)
		return r.text(text)
	case 't':
		return value{Mark: "yes"}
	case 'f':
		return value{Mark: "no"}
	case '[':
		return r.items(raw)
	case '{':
		return r.object(raw)
	case 'n', 0:
		return value{}
	}
	return value{Text: string(raw)}
}

// text is a moment as people say it, or a text as it is.
func (r reading) text(text string) value {
	if t, ok := moment(text); ok {
		if t.Year() <= 1 {
			return value{}
		}
		return value{Text: t.UTC().Format("2006-01-02 15:04:05"), Time: t.UTC().Format(time.RFC3339)}
	}
	if strings.Contains(text, "\n") && !r.short {
		return value{Code: text}
	}
	return value{Text: text}
}

// moment reads a time as answers write it.
func moment(text string) (time.Time, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > len("2006-01-02T15:04:05.999999999+00:00") || text[4] != '-' {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// mostItems is how many entries of a list a cell shows.
const mostItems = 6

func (r reading) items(raw jsontext.Value) (v value) {
	var items []jsontext.Value
	_ = json.Unmarshal(raw, &items)
	for i, item := range items {
		if r.short && i == mostItems {
			v.Items = append(v.Items, value{Text: fmt.Sprintf("and %d more", len(items)-i)})
			break
		}
		one := r.of(item)
		one.Tag = one.Href == "" && one.Code == ""
		v.Items = append(v.Items, one)
	}
	return v
}

// object is a link if it names a record, and its JSON otherwise.
func (r reading) object(raw jsontext.Value) value {
	var m members
	if json.Unmarshal(raw, &m) != nil || len(m) == 0 {
		return value{}
	}
	if role := m.text("role"); role != "" { // one of a list of roles
		return value{Text: m.text("name"), Tag: true}
	}
	if id, entity := m.text("id"), m.text("entity"); entity != "" {
		if id == "" {
			return value{}
		}
		name := m.text("name")
		if name == "" {
			name = id
		}
		v := value{Text: name}
		if r.console.kindAt(entity) != nil {
			v.Href = link(entity, id)
		}
		return v
	}
	return r.json(raw)
}

func (r reading) json(raw jsontext.Value) value {
	raw = raw.Clone()
	if r.short {
		_ = raw.Compact()
		return value{Text: shortened(string(raw), 80)}
	}
	if string(raw) == "{}" {
		return value{}
	}
	_ = raw.Indent(jsontext.WithIndent("  "))
	return value{Code: string(raw)}
}

// shortened ends after some characters.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// field is the value of a field of a record, with names in the place of ids.
func (r reading) field(f *kind.Field, rec members) value {
	raw := rec[f.Shown()]
	switch {
	case f.As != "" && rec[f.As].Kind() == '{':
		return r.of(rec[f.As])
	case f.Roles != "":
		return r.of(rec[f.Shown()+"Display"])
	case f.Lasts():
		return latency(raw)
	case f.Form == kind.Text && len(f.Targets()) > 0:
		var id string
		_ = json.Unmarshal(raw, &id)
		return r.named(f, id)
	case f.Form == kind.Texts && len(f.Targets()) > 0:
		var ids []string
		_ = json.Unmarshal(raw, &ids)
		v := value{}
		for _, id := range ids {
			v.Items = append(v.Items, r.named(f, id))
		}
		return v
	case f.Form == kind.JSON && len(raw) > 0:
		return r.json(raw)
	}
	return r.of(raw)
}

// named is a record by its name.
func (r reading) named(f *kind.Field, id string) value {
	if id == "" {
		return value{}
	}
	v := value{Text: id}
	if name := r.names[id]; name != "" {
		v.Text = name
		if d := r.console.Kinds.Named(f.Targets()[0]); d != nil && len(f.Targets()) == 1 {
			v.Href = link(d.Path, id)
		}
	}
	return v
}

// latency is nanoseconds as people say them.
func latency(raw jsontext.Value) value {
	var ns int64
	if json.Unmarshal(raw, &ns) != nil || ns == 0 {
		return value{}
	}
	return value{Text: fmt.Sprintf("%.1f ms", float64(ns)/float64(time.Millisecond))}
}

// names asks for the names of the records that fields of a record refer to by id
// alone.
func (v *visit) names(fields []*kind.Field, rec members) map[string]string {
	names := map[string]string{}
	for target, ids := range v.referred(fields, rec, map[string][]string{}) {
		d := v.Kinds.Named(target)
		if d == nil || !v.shown(d) || d.Field("name") == nil || len(ids) == 0 {
			continue
		}
		quoted := make([]string, len(ids))
		for i, id := range ids {
			quoted[i] = quote(id)
		}
		page, err := v.list(resource{v.Console, d}.at(), url.Values{"filter": {"id in [" + strings.Join(quoted, ",") + "]"}, "fields": {"id,name"}, "limit": {"500"}})
		if err != nil {
			continue // they are shown by id
		}
		for _, m := range page.Data {
			names[m.text("id")] = m.text("name")
		}
	}
	return names
}

// referred collects ids by the kinds that they are of.
func (v *visit) referred(fields []*kind.Field, rec members, into map[string][]string) map[string][]string {
	for _, f := range fields {
		raw := rec[f.Shown()]
		if f.Form == kind.Struct {
			var inner members
			if json.Unmarshal(raw, &inner) == nil {
				v.referred(f.Members, inner, into)
			}
			continue
		}
		if f.Roles != "" || f.As != "" || len(f.Targets()) == 0 || len(raw) == 0 {
			continue
		}
		var one string
		var list []string
		var keyed members
		switch {
		case json.Unmarshal(raw, &one) == nil && one != "":
			list = []string{one}
		case json.Unmarshal(raw, &list) == nil:
		case json.Unmarshal(raw, &keyed) == nil:
			for id := range keyed {
				list = append(list, id)
			}
		}
		for _, target := range f.Targets() {
			into[target] = append(into[target], list...)
		}
	}
	return into
}

// quote writes a text as filters do.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
