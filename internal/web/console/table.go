package console

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"netkeep.internal/internal/lang/kind"
)

// pageSize is how many rows a table has on a page.
const pageSize = 50

// tableView is a page with rows.
type tableView struct {
	Head, About     string // what the rows are
	Up              *navLink
	Filter, Problem string
	Words           []wordView // that filters may use
	Columns         []columnView
	Rows            []rowView
	New             string // where to make one; empty if nobody can
	One             string
	Total, From, To int
	Previous, Next  string
	Wide            bool
	Widen           string // the same with more columns, or fewer
	Sort            string
	Filtered, Named bool
	Choose          []columnView
	At              string // the moment of which it is; empty for the present
	Past            *pastView
}

type columnView struct {
	Head, Name string
	Href       string // the same in this order; empty if there is none
	Order      string // ascending or descending, if it is the one of the table
	Chosen     bool
}

type rowView struct {
	Href  string
	Cells []value
}

// table shows the records of a kind.
func (v *visit) table(of resource) {
	view := tableView{Head: titled(of.many()), About: about(of.Def), One: of.one()}
	if _, ok := of.creates(); ok {
		view.New = of.page("new")
	}
	v.tableOf(of, of.at(), view)
}

// related shows the records that belong to another.
func (v *visit) related(of resource, id, to string) {
	d := v.kindAt(to)
	if d == nil || !slices.Contains(of.Links, to) {
		v.missing()
		return
	}
	var rec members
	at := v.r.URL.Query().Get("at")
	if err := v.get(of.at()+"/"+id, withAt(url.Values{}, at), &rec); err != nil {
		v.fail(err)
		return
	}
	target := resource{v.Console, d}
	up := navLink{Text: label(rec), Href: pagePast(of.page(id), at)}
	v.tableOf(target, of.at()+"/"+id+"/"+to, tableView{
		Head: titled(target.many()), About: "Of the " + of.one() + " " + label(rec) + ".", One: target.one(), Up: &up,
	})
}

// about is the kind in a sentence.
func about(d *kind.Def) string {
	_, after, ok := strings.Cut(d.Doc, ": ")
	if !ok || strings.HasPrefix(d.Doc, "Register") {
		return d.Doc
	}
	return sentence(after)
}

// label is what people call a record.
func label(rec members) string {
	for _, name := range []string{"name", "targetName", "id"} {
		if text := rec.text(name); text != "" {
			return text
		}
	}
	return ""
}

// plainWords are what somebody types who knows no filter language.
var plainWords = regexp.MustCompile(`^[\p{L}\p{N}@._:/-]+( [\p{L}\p{N}@._:/-]+)*$`)

// condition is the filter that a text stands for: words alone are looked for in
// names.
func condition(of resource, text string) string {
	if of.hasName() && plainWords.MatchString(text) && text != "true" && text != "false" && !strings.Contains(text, " sort by ") && !strings.HasPrefix(text, "sort by ") && !strings.Contains(text, "limit ") {
		return "name icontains " + quote(text)
	}
	return text
}

// tableOf shows a list that an API has at a path.
func (v *visit) tableOf(of resource, at string, view tableView) {
	asked := v.r.URL.Query()
	view.Filter, view.Sort = strings.TrimSpace(asked.Get("filter")), asked.Get("sort")
	view.Wide, view.Named = asked.Get("wide") != "", of.hasName()
	from, _ := strconv.Atoi(asked.Get("from"))
	from = max(0, from)
	view.At = asked.Get("at")
	if view.Past = v.pastOf(view.At); view.Past != nil {
		view.New = ""
	}
	query := withAt(url.Values{"limit": {strconv.Itoa(pageSize)}, "offset": {strconv.Itoa(from)}}, view.At)
	if view.Filter != "" {
		query.Set("filter", condition(of, view.Filter))
		view.Filtered = true
	}
	if at == of.at() {
		query.Set("fields", shownMembers(of, view.Wide, asked["column"]))
	}
	usual := usualOrder(of)
	if order := view.Sort; order != "" || usual != "" {
		if order == "" {
			order = usual
		}
		query.Set("sort", order)
	}
	page, err := v.list(at, query)
	status := http.StatusOK
	var f *failure
	if errors.As(err, &f) && f.status == http.StatusBadRequest && (view.Filtered || view.Sort != "" || view.At != "") {
		status, view.Problem = http.StatusBadRequest, f.says()
		page, err = v.list(at, url.Values{"limit": {"1"}})
		if page != nil {
			page.Data = nil
		}
	}
	if err != nil {
		v.fail(err)
		return
	}
	view.Total, view.From, view.To = page.Meta.Pagination.Total, from+1, from+len(page.Data)
	view.Words = filterWords(of, page.Meta.Fields)
	v.fill(of, &view, page, asked)
	if from > 0 {
		view.Previous = v.with("from", strconv.Itoa(max(0, from-pageSize)))
	}
	if view.To < view.Total && view.Problem == "" {
		view.Next = v.with("from", strconv.Itoa(from+pageSize))
	}
	v.show(status, "table", pageOf(of, view))
}

// pageOf is the page of a table, which follows changes if there is somebody to tell
// of them.
func pageOf(of resource, view tableView) page {
	p := page{Title: view.Head, Body: view}
	if view.At == "" && of.Lane == kind.Model && of.Verbs.Has(kind.Creates) {
		p.Live = of.Path
	}
	return p
}

// usualOrder is that of a table for which nobody asked for another: by name, and the
// latest first of what happens.
func usualOrder(of resource) string {
	switch {
	case of.Lane == kind.Log:
		return "number desc"
	case of.hasName():
		return "name"
	}
	return ""
}

// tableColumns are those of a table, or the ones of all that there are that were chosen.
func tableColumns(of resource, wide bool, chosen []string) (cols []kind.TableColumn) {
	for _, col := range of.Table(wide || len(chosen) > 0) {
		if len(chosen) == 0 || slices.Contains(chosen, col.Path) {
			cols = append(cols, col)
		}
	}
	return cols
}

// shownMembers names what a table shows of records, so that nobody makes the rest.
func shownMembers(of resource, wide bool, chosen []string) string {
	members := []string{"id"}
	for _, col := range tableColumns(of, wide, chosen) {
		if !slices.Contains(members, col.Member) {
			members = append(members, col.Member)
		}
	}
	return strings.Join(members, ",")
}

// fill adds columns and rows.
func (v *visit) fill(of resource, view *tableView, page *listing, asked url.Values) {
	cols := tableColumns(of, view.Wide, asked["column"])
	for _, col := range cols {
		view.Columns = append(view.Columns, v.column(col, view, page.Meta.Fields))
	}
	for _, col := range of.Table(true) {
		in := slices.ContainsFunc(cols, func(c kind.TableColumn) bool { return c.Path == col.Path })
		view.Choose = append(view.Choose, columnView{Head: titled(col.Head), Name: col.Path, Chosen: in})
	}
	read := reading{console: v.Console, short: true}
	for _, rec := range page.Data {
		row := rowView{Href: pagePast(of.page(rec.text("id")), view.At)}
		for _, col := range cols {
			cell := read.of(rec.at(col.Path))
			if col.Field != nil && col.Field.Lasts() {
				cell = latency(rec.at(col.Path))
			}
			row.Cells = append(row.Cells, cell)
		}
		view.Rows = append(view.Rows, row)
	}
}

// column is the head of a column, by which the table can be put in order.
func (v *visit) column(col kind.TableColumn, view *tableView, sortable []string) columnView {
	c := columnView{Head: titled(col.Head), Name: col.Path}
	symbol := strings.TrimSuffix(col.Path, "Display")
	if !slices.Contains(sortable, symbol) || col.Field != nil && (col.Field.Form == kind.Texts || col.Field.Form == kind.JSON) {
		return c
	}
	order := symbol
	switch view.Sort {
	case symbol:
		c.Order, order = "ascending", symbol+" desc"
	case symbol + " desc":
		c.Order = "descending"
	}
	c.Href = v.with("sort", order)
	return c
}

// with is the address of this page with something else in its query, from the first
// row on.
func (v *visit) with(name, value string) string {
	query := v.r.URL.Query()
	query.Del("from")
	query.Set(name, value)
	return (&url.URL{Path: v.r.URL.Path, RawQuery: query.Encode()}).String()
}
