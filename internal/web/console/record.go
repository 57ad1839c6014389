package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"netkeep.internal/internal/lang/kind"
)

// recordView is the page of one record.
type recordView struct {
	Name, One    string
	Up           navLink
	Edit, Delete string
	Tabs         []navLink // what else there is to see of it
	Past         *pastView
	Invite       *navLink // to the invitation of it
	Decide       []navLink
	Fields       []fieldView
	More         []fieldView // what is rarely looked at
	Lists        []relatedView
	Lacks        []string // the lists that have nothing
	Elsewhere    []navLink
	Code         string // the id
}

type fieldView struct {
	Head, Doc string
	Value     value
}

type relatedView struct {
	Head, Href string
	Total      int
	Table      tableView
}

// relatedRows is how many rows of a related list the page of a record shows.
const relatedRows = 5

// record shows one record.
func (v *visit) record(of resource, id string) {
	var rec members
	at := v.r.URL.Query().Get("at")
	if err := v.get(of.at()+"/"+id, withAt(url.Values{}, at), &rec); err != nil {
		v.fail(err)
		return
	}
	view := recordView{Name: label(rec), One: of.one(), Code: rec.text("id"), Up: navLink{Text: titled(of.many()), Href: pagePast(of.page(), at)}}
	view.Tabs, view.Past = tabs(of, id, at), v.pastOf(at)
	if _, ok := of.edits(); ok && at == "" {
		view.Edit = of.page(id, "edit")
	}
	if at == "" {
		view.Decide = decisions(of, rec)
	}
	if of.deletes() && at == "" {
		view.Delete = of.page(id, "delete")
	}
	together(
		func() { view.Invite = v.inviteLink(of, id) },
		func() { view.Fields, view.More = v.fieldsOf(of, rec) },
		func() { view.Lists, view.Lacks = v.relatedLists(of, id, at) },
	)
	if at == "" {
		view.Elsewhere = v.elsewhere(of, id)
	}
	p := page{Title: view.Name, Body: view}
	if at == "" && of.Lane == kind.Model && of.Verbs.Has(kind.Creates) {
		p.Live = of.Path
	}
	v.show(200, "record", p)
}

// fieldsOf shows the fields of a record in the order of the kind, and after them what
// answers have beyond.
func (v *visit) fieldsOf(of resource, rec members) (fields, more []fieldView) {
	read := reading{console: v.Console, names: v.names(of.Fields, rec)}
	told := map[string]bool{"_links": true, "id": true, "isSystem": true}
	for _, f := range of.Fields {
		told[f.Shown()], told[f.As], told[f.Shown()+"Display"] = true, true, true
		if f.Secret || f.Hidden || rec[f.Shown()] == nil || f.Name == "id" {
			continue
		}
		if f.Form == kind.Struct {
			fields = append(fields, structFields(read, f, rec)...)
			continue
		}
		field := fieldView{called(f, f.Name), f.Doc, read.field(f, rec)}
		if field.Value.Empty() || slices.Contains([]string{"createdAt", "updatedAt", "tags"}, f.Name) || field.Value.Code != "" && f.Form == kind.Text {
			more = append(more, field)
		} else {
			fields = append(fields, field)
		}
	}
	var derived []string
	for name := range rec {
		if !told[name] {
			derived = append(derived, name)
		}
	}
	slices.Sort(derived)
	for _, name := range derived {
		field := fieldView{Head: titled(kind.Heading(name)), Value: read.of(rec[name])}
		switch {
		case field.Value.Empty():
		case field.Value.Code != "":
			more = append(more, field)
		default:
			fields = append(fields, field)
		}
	}
	return fields, more
}

// structFields shows the members of a struct, each for itself.
func structFields(read reading, f *kind.Field, rec members) (fields []fieldView) {
	for _, l := range leavesOf(f.Members, "") {
		raw := rec.at(f.Shown() + "." + l.path)
		if raw == nil || l.field.Secret || l.field.Hidden {
			continue
		}
		last := members{l.field.Shown(): raw}
		fields = append(fields, fieldView{called(l.field, f.Last()+"."+l.path), l.field.Doc, read.field(l.field, last)})
	}
	return fields
}

// relatedLists shows the beginning of each list that the record leads to.
func (v *visit) relatedLists(of resource, id, at string) (lists []relatedView, lacks []string) {
	var all []wanted
	var targets []resource
	for _, to := range of.Links {
		if d := v.kindAt(to); d != nil {
			targets = append(targets, resource{v.Console, d})
			all = append(all, wanted{of.at() + "/" + id + "/" + to, withAt(url.Values{"limit": {strconv.Itoa(relatedRows)}}, at)})
		}
	}
	for i, page := range v.lists(all) {
		if page == nil {
			continue
		}
		target, to := targets[i], targets[i].Path
		if len(page.Data) == 0 {
			lacks = append(lacks, target.many())
			continue
		}
		list := relatedView{Head: titled(target.many()), Href: pagePast(of.page(id, to), at), Total: page.Meta.Pagination.Total}
		list.Table.Head = list.Head + " of it"
		read := reading{console: v.Console, short: true}
		cols := target.Table(false)
		for _, col := range cols {
			list.Table.Columns = append(list.Table.Columns, columnView{Head: titled(col.Head)})
		}
		for _, rec := range page.Data {
			row := rowView{Href: pagePast(target.page(rec.text("id")), at)}
			if rec.text("id") == "" {
				row.Href = ""
			}
			for _, col := range cols {
				row.Cells = append(row.Cells, read.of(rec.at(col.Path)))
			}
			list.Table.Rows = append(list.Table.Rows, row)
		}
		lists = append(lists, list)
	}
	return lists, lacks
}

// elsewhere leads to tables of records that refer to this one.
func (v *visit) elsewhere(of resource, id string) (links []navLink) {
	for _, d := range v.Kinds.Defs {
		if !v.shown(d) || d == of.Def || slices.Contains(of.Links, d.Path) {
			continue
		}
		for _, f := range d.Fields {
			if f.Ref != of.Name || f.Form != kind.Text || f.NoFilter || f.Hidden {
				continue
			}
			to := resource{v.Console, d}
			text := titled(to.many())
			if others := slices.ContainsFunc(links, func(l navLink) bool { return l.Text == text }); others {
				text += " (" + strings.ToLower(titled(kind.Heading(f.Name))) + ")"
			}
			links = append(links, navLink{Text: text, Href: to.page() + "?" + url.Values{"filter": {f.Name + " = " + quote(id)}}.Encode()})
		}
	}
	if d := v.Kinds.Named("audit-entry"); d != nil && of.Noted {
		links = append(links, navLink{Text: "What happened to it", Href: link(d.Path) + "?" + url.Values{"filter": {"targetId = " + quote(id)}}.Encode()})
	}
	return links
}
