package api_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netkeep.internal/test/servertest"
)

func TestCreateAndGet(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		least := r.least(t, c)
		full := joined(r.least(t, c), r.more(t, c))
		for _, body := range []M{least, full} {
			made := c.Post(r.path, body).Want(201)
			id := made.ID()
			if diff := cmp.Diff(M{"data": M{"id": id, "_links": M{"self": M{"href": "./" + r.path + "/" + id}}}, "meta": M{}}, made.JSON); diff != "" {
				t.Errorf("create answer differs (-want +got):\n%s", diff)
			}
			a := c.Get(r.path + "/" + id).Want(200)
			if diff := cmp.Diff(M{}, a.At("meta")); diff != "" {
				t.Errorf("meta differs (-want +got):\n%s", diff)
			}
			r.compare(t, a.Data(), joined(r.defaults, body))
			checkBase(t, r, a.Data(), id)
		}
	})
}

var (
	stamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	ident = regexp.MustCompile(`^[0-9A-Za-z.-]{9,11}$`)
)

// checkBase checks what every record has.
func checkBase(t *testing.T, r resource, got M, id string) {
	t.Helper()
	if got["id"] != id || !ident.MatchString(id) {
		t.Errorf("id is %v, want %s in the usual form", got["id"], id)
	}
	for _, name := range []string{"createdAt", "updatedAt"} {
		if text, _ := got[name].(string); !stamp.MatchString(text) {
			t.Errorf("%s is %v, want a date-time with three fraction digits", name, got[name])
		}
	}
	if got["createdAt"] != got["updatedAt"] {
		t.Errorf("updatedAt of a new record is %v, not %v", got["updatedAt"], got["createdAt"])
	}
	home := r.home
	if home == "" {
		home = r.path
	}
	self := "./" + home + "/" + id
	want := M{"self": M{"href": self}}
	for _, sub := range r.links {
		want[sub] = M{"href": self + "/" + sub}
	}
	for path, member := range r.leads {
		want[path] = M{"href": fmt.Sprintf("./%s/%v", path, got[member.(string)])}
	}
	if diff := cmp.Diff(want, got["_links"]); diff != "" {
		t.Errorf("links differ (-want +got):\n%s", diff)
	}
}

func TestReplaceResets(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		first := joined(r.least(t, c), r.more(t, c))
		id := c.Post(r.path, first).Want(201).ID()
		next := r.replacement(t, c)
		a := c.Put(r.path+"/"+id, next).Want(200)
		if diff := cmp.Diff(M{"data": M{}, "meta": M{}}, a.JSON); diff != "" {
			t.Errorf("answer differs (-want +got):\n%s", diff)
		}
		want := joined(r.defaults, next)
		for _, name := range r.fixed {
			want[name] = first[name]
		}
		r.compare(t, c.Get(r.path+"/"+id).Want(200).Data(), want)
	})
}

func TestReplaceRequires(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		id := create(t, c, r.path, nil)
		body := r.replacement(t, c)
		for _, name := range slices.AppendSeq(slices.Clone(r.required), maps.Keys(r.also)) {
			if slices.Contains(r.once, name) {
				continue
			}
			c.Put(r.path+"/"+id, without(body, name)).Fails(400, "COULD_NOT_VALIDATE", name)
			if !slices.Contains(r.nullable, name) {
				c.Put(r.path+"/"+id, joined(body, M{name: nil})).Fails(400, "COULD_NOT_VALIDATE", name)
			}
		}
	})
}

func TestPatchLeaves(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		first := joined(r.least(t, c), r.more(t, c))
		id := c.Post(r.path, first).Want(201).ID()
		patches := []M{{}, {"tags": M{"only": "this"}}}
		if !r.nameless {
			patches = append(patches, M{"name": servertest.Unique("patched")})
		}
		for _, patch := range patches {
			a := c.Patch(r.path+"/"+id, joined(r.patch, patch)).Want(200)
			if diff := cmp.Diff(M{"data": M{}, "meta": M{}}, a.JSON); diff != "" {
				t.Errorf("answer differs (-want +got):\n%s", diff)
			}
			first = joined(first, patch)
			r.compare(t, c.Get(r.path+"/"+id).Want(200).Data(), first)
		}
	})
}

func TestPatchTakesNullForAbsent(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		first := joined(r.least(t, c), r.more(t, c))
		id := c.Post(r.path, first).Want(201).ID()
		for name := range first {
			if _, isObject := first[name].(M); isObject && r.path == "auth-policies" {
				continue // their members are tested by name
			}
			if _, needed := r.patch[name]; !needed {
				c.Patch(r.path+"/"+id, joined(r.patch, M{name: nil})).Want(200)
			}
		}
		r.compare(t, c.Get(r.path+"/"+id).Want(200).Data(), first)
	})
}

func TestUpdatedAtMoves(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		id := create(t, c, r.path, nil)
		before := c.Get(r.path + "/" + id).Data()
		// Times have milliseconds: two changes may share one, never go back.
		servertest.Eventually(t, waitTime, "a later updatedAt", func() bool {
			c.Patch(r.path+"/"+id, joined(r.patch, M{"tags": M{"n": servertest.Unique("")}})).Want(200)
			after := c.Get(r.path + "/" + id).Data()
			if after["createdAt"] != before["createdAt"] || after["updatedAt"].(string) < before["updatedAt"].(string) {
				t.Fatalf("times went from %v to %v", before, after)
			}
			return after["updatedAt"].(string) > before["updatedAt"].(string)
		})
	})
}

func TestDelete(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		body := r.least(t, c)
		id := c.Post(r.path, body).Want(201).ID()
		a := c.Delete(r.path + "/" + id).Want(200)
		if diff := cmp.Diff(M{"data": M{}, "meta": M{}}, a.JSON); diff != "" {
			t.Errorf("answer differs (-want +got):\n%s", diff)
		}
		c.Get(r.path+"/"+id).Fails(404, "NOT_FOUND", "")
		if n := c.Get(r.path + "?filter=" + query(`id = "%s"`, id)).Total(); n != 0 {
			t.Errorf("the list still has %d of it", n)
		}
		c.Post(r.path, body).Want(201) // its name is free again
	})
}

func TestUnknownID(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		for _, id := range []string{"nope", "%22", "%2e%2e", strings.Repeat("x", 300), "%F0%9F%94%91"} {
			c.Get(r.path+"/"+id).Fails(404, "NOT_FOUND", "")
			c.Put(r.path+"/"+id, r.replacement(t, c)).Fails(404, "NOT_FOUND", "")
			c.Patch(r.path+"/"+id, r.patch).Fails(404, "NOT_FOUND", "")
			c.Delete(r.path+"/"+id).Fails(404, "NOT_FOUND", "")
		}
	})
}

func TestRequired(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		body := r.least(t, c)
		for _, name := range r.required {
			c.Post(r.path, without(body, name)).Fails(400, "COULD_NOT_VALIDATE", name)
			if !slices.Contains(r.nullable, name) {
				c.Post(r.path, joined(body, M{name: nil})).Fails(400, "COULD_NOT_VALIDATE", name)
			}
		}
	})
}

// TestWrongTypes gives every member a value of every other JSON type.
func TestWrongTypes(t *testing.T) {
	values := map[string]any{"text": "x", "number": 1.5, "bool": true, "list": []any{M{}}, "object": M{"a": []any{}}}
	typeOf := func(v any) string {
		return map[string]string{"string": "text", "float64": "number", "bool": "bool", "[]interface {}": "list", "map[string]interface {}": "object"}[fmt.Sprintf("%T", v)]
	}
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		full := joined(r.least(t, c), r.more(t, c))
		id := create(t, c, r.path, nil)
		for name, good := range full {
			for typ, bad := range values {
				if typ == typeOf(good) {
					continue
				}
				c.Post(r.path, joined(full, M{name: bad})).Fails(400, "COULD_NOT_PARSE_BODY", name)
				if !slices.Contains(r.unread, name) {
					c.Patch(r.path+"/"+id, joined(r.patch, M{name: bad})).Fails(400, "COULD_NOT_PARSE_BODY", name)
				}
			}
		}
	})
}

func TestNames(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		if r.nameless {
			return
		}
		body := r.least(t, c)
		for _, bad := range []string{"", strings.Repeat("x", 257)} {
			c.Post(r.path, joined(body, M{"name": bad})).Fails(400, "COULD_NOT_VALIDATE", "name")
		}
		// Lengths count characters, not bytes.
		longest := strings.Repeat("é", 244) + servertest.Unique("")[1:]
		id := c.Post(r.path, joined(body, M{"name": longest})).Want(201).ID()
		for _, bad := range []string{"", strings.Repeat("x", 257)} {
			c.Patch(r.path+"/"+id, joined(r.patch, M{"name": bad})).Fails(400, "COULD_NOT_VALIDATE", "name")
			c.Put(r.path+"/"+id, joined(body, r.also, M{"name": bad})).Fails(400, "COULD_NOT_VALIDATE", "name")
		}
		if got := c.Get(r.path + "/" + id).Data()["name"]; got != longest {
			t.Errorf("name is %v, want %v", got, longest)
		}
	})
}

func TestNamesAreUnique(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		if r.nameless {
			return
		}
		body := r.least(t, c)
		first := c.Post(r.path, body).Want(201).ID()
		other := r.least(t, c)
		c.Post(r.path, joined(other, M{"name": body["name"]})).Fails(400, "COULD_NOT_VALIDATE", "name")

		id := c.Post(r.path, other).Want(201).ID()
		c.Patch(r.path+"/"+id, joined(r.patch, M{"name": body["name"]})).Fails(400, "COULD_NOT_VALIDATE", "name")
		c.Put(r.path+"/"+id, joined(other, r.also, M{"name": body["name"]})).Fails(400, "COULD_NOT_VALIDATE", "name")
		if got := c.Get(r.path + "/" + id).Data()["name"]; got != other["name"] {
			t.Errorf("a refused change left the name %v, want %v", got, other["name"])
		}
		// A record does not stand in its own way.
		c.Patch(r.path+"/"+first, joined(r.patch, M{"name": body["name"]})).Want(200)
		c.Put(r.path+"/"+first, joined(body, r.also)).Want(200)
	})
}

func TestTags(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		id := create(t, c, r.path, M{"tags": M{"text": "x", "yes": true, "no": false, "none": nil, "": "empty key"}})
		want := M{"text": "x", "yes": true, "no": false, "none": nil, "": "empty key"}
		r.compare(t, c.Get(r.path+"/"+id).Data(), M{"tags": want})
		for _, bad := range []any{1.0, M{}, []any{}} {
			c.Post(r.path, joined(r.least(t, c), M{"tags": M{"k": bad}})).Fails(400, "COULD_NOT_VALIDATE", "tags.k")
			c.Patch(r.path+"/"+id, joined(r.patch, M{"tags": M{"k": bad}})).Fails(400, "COULD_NOT_VALIDATE", "tags.k")
		}
		c.Patch(r.path+"/"+id, joined(r.patch, M{"tags": M{}})).Want(200) // counts as absent
		r.compare(t, c.Get(r.path+"/"+id).Data(), M{"tags": want})
		c.Patch(r.path+"/"+id, joined(r.patch, M{"tags": M{"a": "b"}})).Want(200) // replaces all
		r.compare(t, c.Get(r.path+"/"+id).Data(), M{"tags": M{"a": "b"}})
		c.Put(r.path+"/"+id, joined(r.replacement(t, c), M{"tags": nil})).Want(200)
		r.compare(t, c.Get(r.path+"/"+id).Data(), M{"tags": M{}})
	})
}

func TestServerMembersAreIgnored(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		forged := M{
			"id": "chosen", "createdAt": "2001-01-01T00:00:00Z", "updatedAt": "2001-01-01T00:00:00Z",
			"isSystem": true, "_links": M{}, "unheardOf": M{"a": 1.0},
		}
		id := c.Post(r.path, joined(r.least(t, c), forged)).Want(201).ID()
		c.Patch(r.path+"/"+id, joined(r.patch, forged)).Want(200)
		got := c.Get(r.path + "/" + id).Data()
		if got["id"] == "chosen" || strings.HasPrefix(got["createdAt"].(string), "2001") || got["unheardOf"] != nil {
			t.Errorf("the answer repeats what only the server may say: %v", got)
		}
		c.Delete(r.path + "/" + id).Want(200) // it is no record of the system
	})
}

func TestCreateTakesNullForAbsent(t *testing.T) {
	forEach(t, func(t *testing.T, c *servertest.Client, r resource) {
		body := r.least(t, c)
		for name := range r.defaults {
			body[name] = nil
		}
		want := r.unsaid()
		id := c.Post(r.path, body).Want(201).ID()
		r.compare(t, c.Get(r.path+"/"+id).Data(), want)
		c.Patch(r.path+"/"+id, joined(r.patch, r.more(t, c))).Want(200)
		c.Put(r.path+"/"+id, joined(body, r.also)).Want(200)
		r.compare(t, c.Get(r.path+"/"+id).Data(), want)
	})
}
