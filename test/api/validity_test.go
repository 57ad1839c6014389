package api_test

import (
	"testing"

	"netkeep.internal/test/servertest"
)

// TestTimesStay has tools write policies back that know nothing of times: what ends
// must not last for ever for that. Who wants it to says null.
func TestTimesStay(t *testing.T) {
	c := shared.Admin(t)
	const from, until = "2020-01-01T00:00:00.000Z", "2999-12-31T23:59:59.999Z"
	for path, body := range map[string]M{
		"service-policies":             {"name": servertest.Unique("p"), "semantic": "AnyOf", "type": "Dial"},
		"edge-router-policies":         {"name": servertest.Unique("p"), "semantic": "AnyOf"},
		"service-edge-router-policies": {"name": servertest.Unique("p"), "semantic": "AnyOf"},
	} {
		id := c.Post(path, joined(body, M{"validFrom": from, "validUntil": until})).Want(201).ID()
		c.Put(path+"/"+id, body).Want(200)
		got := c.Get(path + "/" + id).Data()
		if got["validFrom"] != from || got["validUntil"] != until || got["standing"] != "current" {
			t.Errorf("%s: written back it is %v", path, got)
		}
		c.Patch(path+"/"+id, M{"validUntil": "2019-01-01T00:00:00Z"}).Fails(400, "COULD_NOT_VALIDATE", "validUntil")
		c.Patch(path+"/"+id, M{"validFrom": nil, "validUntil": "2019-01-01T00:00:00Z"}).Want(200)
		if got := c.Get(path + "/" + id).At("data.standing"); got != "over" {
			t.Errorf("%s: ended in the past it is %v", path, got)
		}
		c.Patch(path+"/"+id, M{"validFrom": until, "validUntil": nil}).Want(200)
		if got := c.Get(path + "/" + id).At("data.standing"); got != "upcoming" {
			t.Errorf("%s: begun in the future it is %v", path, got)
		}
		c.Put(path+"/"+id, joined(body, M{"validFrom": nil})).Want(200)
		if got := c.Get(path + "/" + id).Data(); got["standing"] != "current" || got["validFrom"] != nil {
			t.Errorf("%s: without times it is %v", path, got)
		}
		c.Post(path, joined(body, M{"name": servertest.Unique("p"), "validFrom": until, "validUntil": from})).Fails(400, "COULD_NOT_VALIDATE", "validUntil")
		c.Post(path, joined(body, M{"name": servertest.Unique("p"), "validUntil": from})).Fails(400, "COULD_NOT_VALIDATE", "validUntil")
		c.Post(path, joined(body, M{"name": servertest.Unique("p"), "validUntil": "tomorrow"})).Fails(400, "COULD_NOT_PARSE_BODY", "validUntil")
	}
}
