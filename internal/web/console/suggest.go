package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/lang/kind"
)

// mostSuggested is how many suggestions there are at once: more than that nobody reads,
// one types on instead.
const mostSuggested = 20

// maxSuggestQuery is how much of what was typed is looked for.
const maxSuggestQuery = 100

// suggestedFor is what the input of a field is to be offered, and what comes after one
// of it: names of records, role attributes, or both as policies write them.
func suggestedFor(of string, f *kind.Field) (source, after string) {
	switch {
	case f.Roles != "":
		return "roles:" + f.Roles, ""
	case f.Attributes:
		return "attributes:" + of, ""
	case len(f.Targets()) > 0 && (f.Form == kind.Text || f.Form == kind.Texts):
		return "names:" + strings.Join(f.Targets(), ","), ""
	case len(f.Targets()) > 0 && f.Form == kind.Map:
		return "names:" + strings.Join(f.Targets(), ","), ": "
	}
	return "", ""
}

// suggest answers a script with what somebody may be about to type, as a JSON list.
func (v *visit) suggest() {
	asked := v.r.URL.Query()
	source, of, _ := strings.Cut(asked.Get("for"), ":")
	typed := strings.TrimSpace(asked.Get("q"))
	if len(typed) > maxSuggestQuery {
		typed = "" // nothing is called like that
	}
	found := []string{}
	switch source {
	case "names":
		found = v.namesLike(strings.Split(of, ","), typed, "")
	case "attributes":
		found = v.attributesLike(of, typed, "")
	case "roles":
		found = v.rolesLike(of, typed)
	}
	v.w.Header().Set("Content-Type", "application/json")
	if err := json.MarshalWrite(v.w, found[:min(len(found), mostSuggested)]); err != nil {
		v.Log.Debug("suggestions did not arrive", "error", err)
	}
}

// rolesLike are roles as lists of policies have them.
func (v *visit) rolesLike(of, typed string) []string {
	word := strings.TrimLeft(typed, "#@")
	switch {
	case strings.HasPrefix(typed, "@"):
		return v.namesLike([]string{of}, word, "@")
	case strings.HasPrefix(typed, "#"):
		return append(allOf(word), v.attributesLike(of, word, "#")...)
	}
	attributes := append(allOf(word), v.attributesLike(of, word, "#")...)
	return append(attributes[:min(len(attributes), mostSuggested/2)], v.namesLike([]string{of}, word, "@")...)
}

// allOf is the role that everything has, if it is like what was typed.
func allOf(word string) []string {
	if strings.HasPrefix("all", strings.ToLower(word)) {
		return []string{"#all"}
	}
	return nil
}

// namesLike are names of records, those that begin like it first.
func (v *visit) namesLike(targets []string, typed, prefix string) (found []string) {
	for _, target := range targets {
		d := v.Kinds.Named(target)
		if d == nil || !v.shown(d) || d.Field("name") == nil {
			continue
		}
		query := url.Values{"fields": {"name"}, "sort": {"name"}, "limit": {strconv.Itoa(mostSuggested)}}
		if typed != "" {
			query.Set("filter", "name icontains "+quote(typed))
		}
		page, err := v.list(resource{v.Console, d}.at(), query)
		if err != nil {
			continue // one can type
		}
		for _, rec := range page.Data {
			found = append(found, prefix+rec.text("name"))
		}
	}
	return beginFirst(found, prefix+typed)
}

// attributesLike are role attributes that records of a kind have.
func (v *visit) attributesLike(of, typed, prefix string) (found []string) {
	d := v.Kinds.Named(of)
	if d == nil {
		return nil
	}
	query := url.Values{"limit": {strconv.Itoa(mostSuggested)}}
	if typed != "" {
		query.Set("filter", "id icontains "+quote(typed))
	}
	var page struct {
		Data []string `json:"data"`
	}
	a, err := v.ask(request{method: http.MethodGet, path: v.ManagementRoot + "/" + d.Name + "-role-attributes", query: query})
	if err != nil || a.read(&page) != nil {
		return nil // not all kinds have such a list, and one can type
	}
	for _, attribute := range page.Data {
		found = append(found, prefix+attribute)
	}
	return beginFirst(found, prefix+typed)
}

// beginFirst puts what begins with a text before what only has it in it.
func beginFirst(found []string, text string) []string {
	text = strings.ToLower(text)
	rank := func(s string) int {
		if strings.HasPrefix(strings.ToLower(s), text) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(found, func(a, b string) int { return rank(a) - rank(b) })
	return found
}

// wordView is a member that filters may compare.
type wordView struct {
	Name, Type, Doc string
	Values          string // what it can be, if that is one of a few
}

// filterTypes is what people call the forms of fields that filters can compare.
var filterTypes = map[kind.Form]string{kind.Bool: "yes or no", kind.Int: "number", kind.Time: "moment", kind.Texts: "list", kind.Marks: "list"}

// filterWords are the members that a list says filters may name, as its kind describes
// them.
func filterWords(of resource, names []string) (words []wordView) {
	for _, name := range names {
		w := wordView{Name: name, Type: "text"}
		if f := fieldCalled(of.Fields, name); f != nil {
			w.Doc, w.Values = f.Doc, strings.Join(f.Enum, ", ")
			if typ, ok := filterTypes[f.Form]; ok {
				w.Type = typ
			}
		}
		words = append(words, w)
	}
	return words
}

// fieldCalled is the field that filters know by a name; nil if there is none.
func fieldCalled(fields []*kind.Field, name string) *kind.Field {
	for _, f := range fields {
		if f.Name == name || f.Shown() == name || slices.Contains(f.Aliases, name) {
			return f
		}
		if found := fieldCalled(f.Members, name); found != nil {
			return found
		}
	}
	return nil
}

// ListWord is a member of which a record may have several; empty if it has none.
func (view tableView) ListWord() string {
	best := ""
	for _, w := range view.Words {
		if w.Type == "list" && (best == "" || w.Name == "roleAttributes") {
			best = w.Name
		}
	}
	return best
}
