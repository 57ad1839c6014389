package state_test

import (
	"fmt"
	"maps"
	"slices"

	"netkeep.internal/internal/lang/kind"
)

// The kinds of the tests have every rule that state must keep: unique and
// indexed texts, references of every rule and form, also to their own kind,
// roles, attributes, hooks, an order of their own, and both lanes.

type place struct {
	kind.Meta
	Name  string `json:"name" kind:"unique"`
	Zone  string `json:"zone" kind:"index"`
	Count int    `json:"count"`
}

// Ranked has places of a zone together, those with the least in them first.
func (p *place) Ranked() (zone, at string) { return p.Zone + "\x00", fmt.Sprintf("%08d", p.Count) }

type person struct {
	kind.Meta
	Name   string   `json:"name" kind:"unique,searched"`
	Badge  string   `json:"badge" kind:"unique,nullable,searched"`
	Home   string   `json:"home" kind:"ref=place:restrict"`
	Boss   string   `json:"boss" kind:"ref=person:clear"`
	Traits []string `json:"traits" kind:"attributes"`
}

type item struct {
	kind.Meta
	Owner   string         `json:"owner" kind:"ref=person:cascade"`
	Keepers []string       `json:"keepers" kind:"ref=person:clear"`
	Whole   string         `json:"whole" kind:"ref=item:cascade"`
	Weights map[string]int `json:"weights" kind:"ref=place:clear"`
	Law     string         `json:"law" kind:"ref=rule:cascade"`
}

type rule struct {
	kind.Meta
	Who  []string `json:"who" kind:"roles=person"`
	Item string   `json:"item" kind:"ref=item:restrict"`
}

type visit struct {
	kind.Meta
	Person string `json:"person" kind:"ref=person:cascade"`
	Token  string `json:"token" kind:"unique"`
	Host   string `json:"host" kind:"ref=visit:cascade"`
}

// crate is an item's box. Its labels do not refer to it: its hook takes them
// along, and the item too if it has no other place.
type crate struct {
	kind.Meta
	Item   string   `json:"item" kind:"ref=item:cascade"`
	Only   bool     `json:"only"`
	Labels []string `json:"labels"`
}

type label struct {
	kind.Meta
	Text string `json:"text"`
}

// note is an entry of a log.
type note struct {
	kind.Meta
	Text string `json:"text"`
}

func (c *crate) Deleted(w kind.Writer) error {
	for _, id := range c.Labels {
		if err := labels.Delete(w, id); err != nil {
			return err
		}
	}
	if c.Only {
		return items.Delete(w, c.Item)
	}
	return nil
}

var (
	places = kind.Define(kind.Spec[place]{Name: "place", Path: "places", Doc: "A place."})
	people = kind.Define(kind.Spec[person]{Name: "person", Path: "people", Doc: "A person."})
	items  = kind.Define(kind.Spec[item]{Name: "item", Path: "items", Doc: "An item."})
	rules  = kind.Define(kind.Spec[rule]{Name: "rule", Path: "rules", Doc: "A rule."})
	visits = kind.Define(kind.Spec[visit]{Name: "visit", Path: "visits", Doc: "A visit.", Lane: kind.Session})
	crates = kind.Define(kind.Spec[crate]{Name: "crate", Path: "crates", Doc: "A crate."})
	labels = kind.Define(kind.Spec[label]{Name: "label", Path: "labels", Doc: "A label."})
	notes  = kind.Define(kind.Spec[note]{Name: "note", Path: "notes", Doc: "A note.", Lane: kind.Log})

	kinds = kind.NewCatalog(places.Def, people.Def, items.Def, rules.Def, visits.Def, crates.Def, labels.Def, notes.Def)
)

// field is what a test kind's tags say of one field, written down again by
// hand.
type field struct {
	def    *kind.Def
	name   string
	unique bool
	target *kind.Def
	roles  bool
	rule   kind.OnDelete
	keys   func(kind.Record) []string
	drop   func(rec kind.Record, id string)
}

func text(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func without(list []string, s string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(x string) bool { return x == s })
}

// fields are in the order of the kinds and their structs.
var fields = []field{
	{def: places.Def, name: "name", unique: true, keys: func(r kind.Record) []string { return text(r.(*place).Name) }},
	{def: places.Def, name: "zone", keys: func(r kind.Record) []string { return text(r.(*place).Zone) }},

	{def: people.Def, name: "name", unique: true, keys: func(r kind.Record) []string { return text(r.(*person).Name) }},
	{def: people.Def, name: "badge", unique: true, keys: func(r kind.Record) []string { return text(r.(*person).Badge) }},
	{def: people.Def, name: "home", target: places.Def, rule: kind.Restrict,
		keys: func(r kind.Record) []string { return text(r.(*person).Home) }},
	{def: people.Def, name: "boss", target: people.Def, rule: kind.Clear,
		keys: func(r kind.Record) []string { return text(r.(*person).Boss) },
		drop: func(r kind.Record, _ string) { r.(*person).Boss = "" }},

	{def: items.Def, name: "owner", target: people.Def, rule: kind.Cascade,
		keys: func(r kind.Record) []string { return text(r.(*item).Owner) }},
	{def: items.Def, name: "keepers", target: people.Def, rule: kind.Clear,
		keys: func(r kind.Record) []string { return r.(*item).Keepers },
		drop: func(r kind.Record, id string) { r.(*item).Keepers = without(r.(*item).Keepers, id) }},
	{def: items.Def, name: "whole", target: items.Def, rule: kind.Cascade,
		keys: func(r kind.Record) []string { return text(r.(*item).Whole) }},
	{def: items.Def, name: "weights", target: places.Def, rule: kind.Clear,
		keys: func(r kind.Record) []string { return slices.Sorted(maps.Keys(r.(*item).Weights)) },
		drop: func(r kind.Record, id string) { delete(r.(*item).Weights, id) }},
	{def: items.Def, name: "law", target: rules.Def, rule: kind.Cascade,
		keys: func(r kind.Record) []string { return text(r.(*item).Law) }},

	{def: rules.Def, name: "who", target: people.Def, rule: kind.Clear, roles: true,
		keys: func(r kind.Record) []string { return r.(*rule).Who },
		drop: func(r kind.Record, id string) { r.(*rule).Who = without(r.(*rule).Who, "@"+id) }},
	{def: rules.Def, name: "item", target: items.Def, rule: kind.Restrict,
		keys: func(r kind.Record) []string { return text(r.(*rule).Item) }},

	{def: visits.Def, name: "person", target: people.Def, rule: kind.Cascade,
		keys: func(r kind.Record) []string { return text(r.(*visit).Person) }},
	{def: visits.Def, name: "token", unique: true, keys: func(r kind.Record) []string { return text(r.(*visit).Token) }},
	{def: visits.Def, name: "host", target: visits.Def, rule: kind.Cascade,
		keys: func(r kind.Record) []string { return text(r.(*visit).Host) }},

	{def: crates.Def, name: "item", target: items.Def, rule: kind.Cascade,
		keys: func(r kind.Record) []string { return text(r.(*crate).Item) }},
}

// plain shows a record without its times. What is empty looks alike.
func plain(d *kind.Def, rec kind.Record) string {
	c := d.Clone(rec)
	m := c.Base()
	m.CreatedAt, m.UpdatedAt = kind.Moment{}, kind.Moment{}
	return fmt.Sprintf("%+v", c)
}
