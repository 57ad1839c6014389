package kind

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/lang/terse"
)

// vocabulary tries words on a field x of some type, beside a text field
// variant before it.
var vocabulary = []struct {
	field any
	tag   string
	want  string // how Describe says it, or what the panic says after "kind: "
	bad   bool
}{
	{field: "", tag: "required", want: "text required"},
	{field: "", tag: "required=patch", want: "text required=patch"},
	{field: "", tag: "required=create|patch", want: "text required=create|patch"},
	{field: "", tag: "required=create|replace", want: "text required"},
	{field: "", tag: "required=", want: `word "required=" needs an argument`, bad: true},
	{field: "", tag: "required=delete", want: `word "required=delete": no shape "delete"`, bad: true},

	{field: 0, tag: "fixed", want: "int fixed"},
	{field: 0, tag: "fixed,required", want: "a fixed field is read from create bodies alone", bad: true},
	{field: 0, tag: "fixed,repeated,required", want: "int required fixed repeated"},
	{field: 0, tag: "repeated", want: "repeated says nothing where bodies can set the field", bad: true},
	{field: 0, tag: "fixed=yes", want: `word "fixed=yes" takes no argument`, bad: true},
	{field: 0, tag: "server", want: "int server"},
	{field: 0, tag: "server=1", want: `word "server=1" takes no argument`, bad: true},
	{field: 0, tag: "server,required", want: "no body sets it", bad: true},
	{field: 0, tag: "server,fixed", want: "no body sets it", bad: true},
	{field: 0, tag: "server,keep", want: "no body sets it", bad: true},
	{field: 0, tag: "default=1,server", want: "int server default=1"},
	{field: "", tag: "enum=a|b,synonym=c:b|d:a", want: "text enum=a|b synonym=c:b|d:a"},
	{field: "", tag: "enum=a|b,synonym=c:d", want: "a synonym must stand for a word of enum", bad: true},
	{field: "", tag: "synonym=c:d", want: "a synonym must stand for a word of enum", bad: true},
	{field: "", tag: "enum=a|b,synonym=a:b", want: "a synonym must be no word of enum itself", bad: true},
	{field: "", tag: "enum=a|b,synonym=c", want: "must look like word:meaning", bad: true},
	{field: 0, tag: "synonym=c:d", want: "does not fit a field of form int", bad: true},
	{field: []string{}, tag: "format=hex", want: "texts format=hex"},
	{field: 0, tag: "was=y|z", want: "int was=y|z"},
	{field: 0, tag: "was", want: `word "was" needs an argument`, bad: true},
	{field: 0, tag: "was=y|", want: "names nothing between two bars", bad: true},
	{field: "", tag: "secret", want: "text secret"},
	{field: "", tag: "sealed", want: "text sealed"},
	{field: []string{}, tag: "sealed=x", want: `word "sealed=x" takes no argument`, bad: true},
	{field: "", tag: "secret=", want: `word "secret=" takes no argument`, bad: true},
	{field: "", tag: "hidden", want: "text hidden"},
	{field: "", tag: "hidden=x", want: `word "hidden=x" takes no argument`, bad: true},
	{field: "", tag: "keep", want: "text keep"},
	{field: "", tag: "keep=x", want: `word "keep=x" takes no argument`, bad: true},
	{field: "", tag: "keep,fixed", want: "keep says nothing", bad: true},
	{field: "", tag: "keep,required", want: "keep says nothing", bad: true},
	{field: "", tag: "keep,required=create|patch", want: "text required=create|patch keep"},
	{field: "", tag: "clear", want: `unknown word "clear"`, bad: true},
	{field: "", tag: "nullable", want: "text nullable"},
	{field: true, tag: "nullable", want: `word "nullable" does not fit a field of form bool`, bad: true},
	{field: "", tag: "nullable,omit", want: "nullable and omit contradict each other", bad: true},
	{field: []string{}, tag: "null", want: "texts null"},
	{field: "", tag: "null", want: `word "null" does not fit a field of form text`, bad: true},
	{field: []string{}, tag: "null,nullable", want: "null is for a list that every record has", bad: true},
	{field: []string{}, tag: "null,required", want: "null is for a list that every record has", bad: true},
	{field: []string{}, tag: "server,null", want: "null is for a list that every record has", bad: true},
	{field: true, tag: "omit", want: "bool omit"},
	{field: true, tag: "omit=1", want: `word "omit=1" takes no argument`, bad: true},
	{field: "", tag: "nofilter", want: "text nofilter"},
	{field: "", tag: "nofilter=1", want: `word "nofilter=1" takes no argument`, bad: true},

	{field: "", tag: "unique", want: "text unique"},
	{field: "", tag: "unique,searched", want: "text unique searched"},
	{field: "", tag: "index,few", want: "text index few"},
	{field: "", tag: "few", want: "few is for an index", bad: true},
	{field: "", tag: "unique,few", want: "few is for an index", bad: true},
	{field: "", tag: "index,searched", want: "searched is for a unique field", bad: true},
	{field: "", tag: "unique,searched,nofilter", want: "searched is for a unique field", bad: true},
	{field: "", tag: "unique,searched,when=variant:a", want: "searched is for a unique field", bad: true},
	{field: 1, tag: "unique", want: `word "unique" does not fit a field of form int`, bad: true},
	{field: "", tag: "index", want: "text index"},
	{field: []string{}, tag: "index", want: `word "index" does not fit a field of form texts`, bad: true},
	{field: []string{}, tag: "attributes", want: "texts attributes"},
	{field: "", tag: "attributes", want: `word "attributes" does not fit a field of form text`, bad: true},
	{field: []string{}, tag: "roles=other", want: "texts roles=other"},
	{field: []string{}, tag: "roles", want: `word "roles" needs an argument`, bad: true},
	{field: []string{}, tag: "roles=", want: `word "roles=" needs an argument`, bad: true},
	{field: map[string]int{}, tag: "roles=other", want: `word "roles=other" does not fit a field of form map`, bad: true},
	{field: []string{}, tag: "roles=other,attributes", want: "roles are neither", bad: true},
	{field: []string{}, tag: "roles=other,ref=other:clear", want: "roles are neither", bad: true},
	{field: "", tag: "ref=other:restrict", want: "text ref=other:restrict"},
	{field: []string{}, tag: "ref=other:cascade", want: "texts ref=other:cascade"},
	{field: map[string]bool{}, tag: "ref=other:clear", want: "map of bool ref=other:clear"},
	{field: "", tag: "ref=other", want: `word "ref=other": no rule "" for the target's delete`, bad: true},
	{field: "", tag: "ref=other:ignore", want: `no rule "ignore"`, bad: true},
	{field: "", tag: "ref=:clear", want: `word "ref=:clear": names no kind`, bad: true},
	{field: "", tag: "ref", want: `word "ref" needs an argument`, bad: true},
	{field: 0, tag: "ref=other:clear", want: `word "ref=other:clear" does not fit a field of form int`, bad: true},
	{field: "", tag: "as=other,ref=other:clear", want: "text ref=other:clear as=other"},
	{field: "", tag: "as=other", want: "as and link need a ref to lead to", bad: true},
	{field: []string{}, tag: "ref=other:clear,as=others", want: `word "as=others" does not fit a field of form texts`, bad: true},
	{field: "", tag: "out=y", want: "text out=y"},
	{field: "", tag: "out", want: `word "out" needs an argument`, bad: true},
	{field: "", tag: "alias=a|b", want: "text alias=a|b"},
	{field: "", tag: "alias=a|", want: `word "alias=a|": names nothing between two bars`, bad: true},

	{field: "", tag: "range=1..9", want: "text range=1..9"},
	{field: 0, tag: "range=-1..", want: "int range=-1.."},
	{field: map[string]int64{}, tag: "range=0..5", want: "map of int range=0..5"},
	{field: []byte{}, tag: "range=0..5", want: "bytes range=0..5"},
	{field: 0, tag: "range=5", want: `word "range=5": must look like 1..9`, bad: true},
	{field: 0, tag: "range=a..5", want: `parsing "a": invalid syntax`, bad: true},
	{field: 0, tag: "range=1..b", want: `parsing "b": invalid syntax`, bad: true},
	{field: 0, tag: "range=..5", want: `parsing "": invalid syntax`, bad: true},
	{field: 0, tag: "range=6..5", want: `word "range=6..5": no value is in it`, bad: true},
	{field: true, tag: "range=0..1", want: `word "range=0..1" does not fit a field of form bool`, bad: true},
	{field: map[string]string{}, tag: "range=0..1", want: "range does not fit values of form text", bad: true},
	{field: "", tag: "ref=maker:clear,link", want: "text ref=maker:clear link"},
	{field: "", tag: "among=maker|widget", want: "text among=maker|widget"},
	{field: []string{}, tag: "among=maker", want: "texts among=maker"},
	{field: "", tag: "among=maker,ref=maker:clear", want: "among says of which kinds", bad: true},
	{field: "", tag: "link", want: "as and link need a ref to lead to", bad: true},
	{field: "", tag: "enum=a|b,numbered", want: "text enum=a|b numbered"},
	{field: "", tag: "numbered", want: "numbered needs an enum to count", bad: true},
	{field: "", tag: "enum=a|b", want: "text enum=a|b"},
	{field: []string{}, tag: "enum=a", want: "texts enum=a"},
	{field: map[string]string{}, tag: "enum=a|b", want: "map of text enum=a|b"},
	{field: "", tag: "enum=a||b", want: "names nothing between two bars", bad: true},
	{field: 0, tag: "enum=1|2", want: `word "enum=1|2" does not fit a field of form int`, bad: true},
	{field: map[string]int{}, tag: "enum=1", want: "enum does not fit values of form int", bad: true},
	{field: "", tag: "format=uri", want: "text format=uri"},
	{field: "", tag: "format=email", want: `word "format=email": no format "email"`, bad: true},
	{field: 0, tag: "format=uri", want: `word "format=uri" does not fit a field of form int`, bad: true},
	{field: "", tag: "default=x", want: "text default=x"},
	{field: true, tag: "default=true", want: "bool default=true"},
	{field: int32(0), tag: "default=-7", want: "int default=-7"},
	{field: true, tag: "default=yes", want: `word "default=yes": strconv.ParseBool`, bad: true},
	{field: 0, tag: "default=x", want: `word "default=x": strconv.ParseInt`, bad: true},
	{field: int32(0), tag: "default=2147483648", want: "value out of range", bad: true},
	{field: time.Time{}, tag: "default=now", want: `word "default=now" does not fit a field of form time`, bad: true},
	{field: "", tag: "default=c,enum=a|b", want: "the default is refused: x must be one of a, b", bad: true},
	{field: 0, tag: "default=9,range=0..5", want: "the default is refused: x must be 0 to 5", bad: true},
	{field: "", tag: "required,enum=a|b,usual=a", want: "text required enum=a|b usual=a"},
	{field: true, tag: "required,usual=true", want: "bool required usual=true"},
	{field: "", tag: "usual=x", want: "usual says nothing where a create may leave the field out", bad: true},
	{field: "", tag: "required,enum=a|b,usual=c", want: "the usual value is refused: x must be one of a, b", bad: true},
	{field: 0, tag: "required,usual=x", want: `word "usual=x": strconv.ParseInt`, bad: true},
	{field: "", tag: "when=variant:a", want: "text when=variant:a"},
	{field: "", tag: "when=variant", want: `word "when=variant": must look like field:value`, bad: true},
	{field: "", tag: "when=:a", want: `word "when=:a": must look like field:value`, bad: true},
	{field: "", tag: "when=variant:c", want: `field "variant" is never "c"`, bad: true},
	{field: "", tag: "when=nothing:a", want: `depends on "nothing", which is no text field before it`, bad: true},
	{field: "", tag: "when=x:a", want: `depends on "x", which is no text field before it`, bad: true},
	{field: "", tag: "when=after:a", want: `depends on "after", which is no text field before it`, bad: true},
	{field: "", tag: "when=number:a", want: `depends on "number", which is no text field before it`, bad: true},

	{field: "", tag: "requird", want: `unknown word "requird"`, bad: true},
	{field: terse.Text(""), tag: "omit", want: "nothing is found or judged by it", bad: true},
	{field: terse.Text(""), tag: "server,unique", want: "nothing is found or judged by it", bad: true},
	{field: terse.Text(""), tag: "server,index", want: "nothing is found or judged by it", bad: true},
	{field: terse.Text(""), tag: "server,range=1..9", want: "nothing is found or judged by it", bad: true},
	{field: terse.Text(""), tag: "server,enum=a|b", want: "nothing is found or judged by it", bad: true},
	{field: terse.Text(""), tag: "server,format=url", want: "nothing is found or judged by it", bad: true},
	{field: terse.Text(""), tag: "server,default=a", want: "nothing is found or judged by it", bad: true},
	{field: terse.Text(""), tag: "server,ref=a:clear", want: "nothing is found or judged by it", bad: true},
	{field: terse.Text(""), tag: "server,among=a", want: "nothing is found or judged by it", bad: true},
	{field: "", tag: "required,,fixed", want: `unknown word ""`, bad: true},
	{field: "", tag: "required, fixed", want: `unknown word " fixed"`, bad: true},
	{field: "", tag: "Required", want: `unknown word "Required"`, bad: true},
}

func TestVocabulary(t *testing.T) {
	good, bad := map[string]bool{}, map[string]bool{}
	for _, tt := range vocabulary {
		got := describeField(reflect.TypeOf(tt.field), tt.tag)
		if tt.bad {
			const where = "panic: kind: field x of struct"
			if !strings.HasPrefix(got, where) || !strings.Contains(got, tt.want) {
				t.Errorf("%T %s: got %q, want a panic with %q", tt.field, tt.tag, got, tt.want)
			}
		} else if got != "x "+tt.want {
			t.Errorf("%T %s: got %q, want %q", tt.field, tt.tag, got, tt.want)
		}
		for part := range strings.SplitSeq(tt.tag, ",") {
			name, _, _ := strings.Cut(part, "=")
			good[name], bad[name] = good[name] || !tt.bad, bad[name] || tt.bad
		}
	}
	for name := range words {
		if !good[name] || !bad[name] {
			t.Errorf("word %q lacks a case: works %t, fails %t", name, good[name], bad[name])
		}
	}
}

// describeField is what Describe prints of a field x with the tag, or the
// panic that it causes.
func describeField(typ reflect.Type, tag string) (line string) {
	defer func() {
		if p := recover(); p != nil {
			line = fmt.Sprintf("panic: %v", p)
		}
	}()
	field := func(name string, typ reflect.Type, tag string) reflect.StructField {
		return reflect.StructField{
			Name: strings.ToUpper(name), Type: typ,
			Tag: reflect.StructTag(fmt.Sprintf(`json:%q kind:%q`, name, tag)),
		}
	}
	fields := readFields(reflect.StructOf([]reflect.StructField{
		field("variant", textType, "enum=a|b"),
		field("number", reflect.TypeFor[int](), "nofilter"),
		field("x", typ, tag),
		field("after", textType, "nofilter"),
	}), "")
	var b strings.Builder
	describeFields(&b, fields[2:3], "")
	return strings.TrimSuffix(b.String(), "\n")
}

// TestForms of types tells which Go types can be fields.
func TestFormOf(t *testing.T) {
	type word string
	type nested struct{ A word }
	for typ, want := range map[reflect.Type]string{
		reflect.TypeFor[string]():                "text",
		reflect.TypeFor[word]():                  "text",
		reflect.TypeFor[bool]():                  "bool",
		reflect.TypeFor[int]():                   "int",
		reflect.TypeFor[int32]():                 "int",
		reflect.TypeFor[int64]():                 "int",
		reflect.TypeFor[time.Time]():             "time",
		reflect.TypeFor[*time.Time]():            "time",
		reflect.TypeFor[[]byte]():                "bytes",
		reflect.TypeFor[[]string]():              "texts",
		reflect.TypeFor[nested]():                "struct",
		reflect.TypeFor[*nested]():               "struct",
		reflect.TypeFor[[]nested]():              "structs",
		reflect.TypeFor[map[string]word]():       "map",
		reflect.TypeFor[map[string]int64]():      "map",
		reflect.TypeFor[map[string]bool]():       "map",
		reflect.TypeFor[Tags]():                  "tags",
		jsonType:                                 "json",
		reflect.TypeFor[uint]():                  "",
		reflect.TypeFor[float64]():               "",
		reflect.TypeFor[any]():                   "",
		reflect.TypeFor[*string]():               "",
		reflect.TypeFor[*int]():                  "",
		reflect.TypeFor[**nested]():              "",
		reflect.TypeFor[*[]string]():             "",
		reflect.TypeFor[[]word]():                "",
		reflect.TypeFor[[]int]():                 "",
		reflect.TypeFor[[]*nested]():             "",
		reflect.TypeFor[[]time.Time]():           "",
		reflect.TypeFor[[][]string]():            "",
		reflect.TypeFor[map[word]string]():       "",
		reflect.TypeFor[map[int]string]():        "",
		reflect.TypeFor[map[string]any]():        "",
		reflect.TypeFor[map[string]terse.Text](): "",
		reflect.TypeFor[terse.Text]():            "text",
		reflect.TypeFor[map[string]nested]():     "",
		reflect.TypeFor[[2]string]():             "",
		reflect.TypeFor[func()]():                "",
	} {
		form, ok := formOf(typ)
		if ok != (want != "") || ok && form.String() != want {
			t.Errorf("%s: got %s, %t; want %q", typ, form, ok, want)
		}
	}
}
