package kind_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// maker is what widgets refer to.
type maker struct {
	kind.Meta

	Name string `json:"name" kind:"required,unique"`
}

var makers = kind.Define(kind.Spec[maker]{Name: "maker", Path: "makers", Doc: "Who makes widgets."})

// widget has every form and every word of the vocabulary.
type widget struct {
	kind.Meta

	Name     string            `json:"name" kind:"required,unique,range=1..8"`
	Serial   string            `json:"serial" kind:"required=create,fixed,index"`
	Owner    string            `json:"owner" kind:"nullable,alias=holder|keeper,out=ownerName"`
	Mode     string            `json:"mode" kind:"enum=slow|fast,default=slow"`
	Site     string            `json:"site" kind:"format=url,omit"`
	Note     string            `json:"note" kind:"required=patch"`
	MakerID  string            `json:"makerId" kind:"ref=maker:restrict,as=maker"`
	BackupID string            `json:"backupId" kind:"ref=maker:clear,as=backup,omit"`
	ParentID string            `json:"parentId" kind:"ref=widget:cascade"`
	Makers   []string          `json:"makers" kind:"ref=maker:clear"`
	Prices   map[string]int64  `json:"prices" kind:"ref=maker:clear,range=0..99"`
	Grades   map[string]string `json:"grades" kind:"enum=good|bad"`
	Switches map[string]bool   `json:"switches"`
	Colors   []string          `json:"colors" kind:"enum=red|green|blue,range=0..3"`
	Traits   []string          `json:"traits" kind:"attributes"`
	Roles    []string          `json:"roles" kind:"roles=maker"`
	Active   bool              `json:"active" kind:"default=true"`
	Count    int               `json:"count" kind:"required=replace,range=-5..5"`
	Level    int32             `json:"level" kind:"default=3"`
	Made     time.Time         `json:"made"`
	Sold     *time.Time        `json:"sold" kind:"nofilter"`
	Seen     *time.Time        `json:"seen" kind:"server,omit"`
	Blob     []byte            `json:"blob" kind:"range=0..4"`
	Data     jsontext.Value    `json:"data"`
	Size     size              `json:"size"`
	Box      *box              `json:"box"`
	Parts    []part            `json:"parts" kind:"range=0..3"`
	Key      string            `json:"key" kind:"secret,range=3..6"`
	Keys     []string          `json:"keys" kind:"secret,enum=k1|k2"`
	Safe     safe              `json:"safe" kind:"secret"`
	Digest   string            `json:"digest" kind:"server,secret,unique"`
	Rank     int               `json:"rank" kind:"server,hidden"`
	Type     string            `json:"type" kind:"keep,enum=disk|wheel"`
	Bytes    int               `json:"bytes" kind:"required,when=type:disk"`
	Spokes   int               `json:"spokes" kind:"when=type:wheel,default=8"`
	Tube     tube              `json:"tube" kind:"when=type:wheel"`
	Gear     []gear            `json:"gear" kind:"when=type:wheel"`
	Checked  string            `json:"checked" kind:"server,when=type:wheel"`

	notes []string `json:"-"`
}

// size is a nested struct that is always there.
type size struct {
	Width  int    `json:"width" kind:"required,range=1..100"`
	Unit   string `json:"unit" kind:"default=mm,out=measure"`
	Origin string `json:"origin" kind:"fixed"`
	Probe  string `json:"probe" kind:"server,omit"`
	Inner  inner  `json:"inner"`
}

type inner struct {
	Deep  string `json:"deep" kind:"unique"`
	Shade string `json:"shade" kind:"hidden"`
}

// box is a nested struct that may be unset.
type box struct {
	Label  string   `json:"label" kind:"required,range=1..5"`
	Depth  int      `json:"depth" kind:"default=7"`
	Stamps []string `json:"stamps" kind:"nullable"`

	Unknown *jsontext.Value `json:",embed"`
}

// part is an element of a list.
type part struct {
	Code string `json:"code" kind:"required,range=1..4"`
	Qty  int    `json:"qty" kind:"default=1"`
	Pin  string `json:"pin" kind:"secret,enum=0000|1111"`
	Lot  string `json:"lot" kind:"server"`
}

// safe is a secret with members.
type safe struct {
	Code string            `json:"code" kind:"range=2..4"`
	Door door              `json:"door"`
	Log  []part            `json:"log"`
	Tags kind.Tags         `json:"tags"`
	Pins map[string]string `json:"pins" kind:"enum=a|b"`
}

type door struct {
	Lock string `json:"lock" kind:"format=uri"`
}

// gear is an element with a variant of its own.
type gear struct {
	Size  string `json:"size" kind:"enum=big|small,default=big"`
	Teeth int    `json:"teeth" kind:"range=10..99,when=size:big"`
}

type tube struct {
	Valve string `json:"valve"`
}

// Fill follows from the name.
func (w *widget) Fill() {
	if w.Note == "fill" {
		w.Note = "filled " + w.Name
	}
}

// Check refuses one name, and a rename to the old name's double.
func (w *widget) Check(_ kind.Reader, old *widget) error {
	if w.Name == "cursed" || old != nil && w.Name == old.Name+old.Name {
		return fault.Invalid("name", "is cursed", w.Name)
	}
	return nil
}

// Guard keeps one widget.
func (w *widget) Guard(kind.Reader) error {
	if w.Name == "kept" {
		return fault.New(fault.CodeUndeletable, "is kept")
	}
	return nil
}

// Saved and Deleted tell the test that they ran.
func (w *widget) Saved(_ kind.Writer, old *widget) error {
	if old == nil {
		return errors.New("created " + w.Name)
	}
	return errors.New("changed " + old.Name)
}

func (w *widget) Deleted(kind.Writer) error { return errors.New("deleted " + w.Name) }

var (
	widgets = kind.Define(kind.Spec[widget]{
		Name: "widget", Path: "widgets", Doc: "A thing to test with.", Lane: kind.Session, Links: []string{"parts"},
	})
	shop = kind.NewCatalog(makers.Def, widgets.Def)
)

// minimal is the least that a create body needs.
const minimal = `{"name":"w1","serial":"s1"}`

// read parses a body that must be well formed.
func read(t testing.TB, text string) kind.Body {
	t.Helper()
	b, err := kind.ReadBody([]byte(text))
	if err != nil {
		t.Fatalf("ReadBody(%s): %v", text, err)
	}
	return b
}

// create returns the widget that a body makes.
func create(t testing.TB, text string) *widget {
	t.Helper()
	w := new(widget)
	if err := widgets.Apply(kind.Create, w, read(t, text)); err != nil {
		t.Fatalf("create %s: %v", text, err)
	}
	return w
}

// full is a body with a value for every field that a body may set.
const full = `{
	"tags": {"a": "b", "c": true, "d": null},
	"name": "full", "serial": "s9", "owner": "ann", "mode": "fast", "site": "https://a.example/x", "note": "n",
	"makerId": "m1", "backupId": "m2", "parentId": "w0", "makers": ["m2", "m1"],
	"prices": {"m1": 1, "m2": 99}, "grades": {"x": "good"}, "switches": {"on": true},
	"colors": ["red", "blue"], "traits": ["t2", "t1", "t2"], "roles": ["@m1", "#t1"],
	"active": false, "count": 5, "level": 9, "made": "2023-04-26T10:11:12.345678Z", "sold": "2023-04-26T12:11:12+02:00",
	"blob": "AQID", "data": {"z": 9007199254740993, "a": [1, 2.50, "\u0041"]},
	"size": {"width": 10, "unit": "cm", "origin": "o", "inner": {"deep": "d", "shade": "s"}},
	"box": {"label": "l", "depth": 2, "stamps": ["x"]},
	"parts": [{"code": "p1", "qty": 3, "pin": "0000"}, {"code": "p2"}],
	"key": "k3y!", "keys": ["k1"],
	"safe": {"code": "1234", "door": {"lock": "urn:lock"}, "log": [{"code": "q"}], "tags": {"hush": "mum"}, "pins": {"p": "a"}},
	"type": "wheel", "spokes": 12, "tube": {"valve": "v"}, "gear": [{"size": "small"}, {"teeth": 12}]
}`
