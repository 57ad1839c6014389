package integrity_test

import (
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// The kinds of the tests have a field for every rule that a record can break.

type place struct {
	kind.Meta
	Name string `json:"name" kind:"required,unique,range=1..8"`
}

type person struct {
	kind.Meta
	Name   string   `json:"name" kind:"required,unique,range=1..8"`
	Badge  string   `json:"badge" kind:"unique,nullable"`
	Home   string   `json:"home" kind:"ref=place:restrict,default=home"`
	Born   string   `json:"born" kind:"required,ref=place:restrict"`
	Exile  string   `json:"exile" kind:"ref=place:restrict"`
	Boss   string   `json:"boss" kind:"ref=person:clear"`
	Traits []string `json:"traits" kind:"attributes"`
}

type item struct {
	kind.Meta
	Owner   string         `json:"owner" kind:"ref=person:cascade"`
	Keepers []string       `json:"keepers" kind:"ref=person:clear"`
	Weights map[string]int `json:"weights" kind:"ref=place:clear,range=0..9"`
	Size    int            `json:"size"`
	Shape   string         `json:"shape" kind:"enum=round|flat"`
	Flat    flat           `json:"flat" kind:"when=shape:flat"`
	Parts   []part         `json:"parts"`
}

type flat struct {
	Width int `json:"width" kind:"range=1..9"`
}

type part struct {
	Site string `json:"site" kind:"format=uri"`
}

// Check keeps things from being less than nothing.
func (i *item) Check(kind.Reader, *item) error {
	if i.Size < 0 {
		return fault.Invalid("size", "must not be negative", i.Size)
	}
	return nil
}

type rule struct {
	kind.Meta
	Who []string `json:"who" kind:"roles=person"`
}

type visit struct {
	kind.Meta
	Person string `json:"person" kind:"ref=person:cascade"`
	Token  string `json:"token" kind:"secret,server,unique"`
}

var (
	places = kind.Define(kind.Spec[place]{Name: "place", Path: "places", Doc: "A place."})
	people = kind.Define(kind.Spec[person]{Name: "person", Path: "people", Doc: "A person."})
	items  = kind.Define(kind.Spec[item]{Name: "item", Path: "items", Doc: "An item."})
	rules  = kind.Define(kind.Spec[rule]{Name: "rule", Path: "rules", Doc: "A rule."})
	visits = kind.Define(kind.Spec[visit]{Name: "visit", Path: "visits", Doc: "A visit.", Lane: kind.Session})

	kinds = kind.NewCatalog(places.Def, people.Def, items.Def, rules.Def, visits.Def)
)

// seed adds the place that everybody may call home.
func seed(w kind.Writer) error {
	if _, ok := places.Get(w, "home"); ok {
		return nil
	}
	return places.Create(w, &place{Meta: kind.Meta{ID: "home"}, Name: "home"})
}
