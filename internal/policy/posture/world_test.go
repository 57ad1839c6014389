package posture_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when tests begin.
var start = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

// tester is what *testing.T, *testing.B, *testing.F and *rapid.T have in
// common here.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// world is a network in memory, and what devices report in it. It has one
// identity, called i.
type world struct {
	t       tester
	st      *state.State
	reports reports
	now     time.Time
	made    int
}

func newWorld(t tester) *world {
	w := &world{t: t, now: start, reports: reports{}}
	st, err := state.Open(context.Background(), storetest.NewMemory(), model.All, state.Options{Frozen: true, Now: func() time.Time { return w.now }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	w.st = st
	w.write(func(tx *state.Tx) error {
		if err := model.Seed(tx); err != nil {
			return err
		}
		err := model.Identities.Create(tx, &model.Identity{
			Meta: kind.Meta{ID: "i"}, Name: "i", Type: "User",
		})
		if err != nil {
			return err
		}
		return model.MFAs.Create(tx, &model.MFA{IdentityID: "i", IsVerified: true})
	})
	return w
}

func (w *world) write(fn func(*state.Tx) error) {
	w.t.Helper()
	if err := w.st.Update(context.Background(), state.Program("test"), fn); err != nil {
		w.t.Fatal(err)
	}
}

// check creates a check. One without an id gets one.
func (w *world) check(c model.PostureCheck) *model.PostureCheck {
	w.t.Helper()
	if w.made++; c.ID == "" {
		c.ID = fmt.Sprint("c", w.made)
	}
	c.Name = "check " + c.ID
	w.write(func(tx *state.Tx) error { return model.PostureChecks.Create(tx, &c) })
	rec, _ := model.PostureChecks.Get(w.st.Snapshot(), c.ID)
	return rec
}

// pass creates an API session, or lets one pass its second factor now.
func (w *world) pass(session string, passed bool) posture.Session {
	w.t.Helper()
	err := w.st.UpdateSessions(context.Background(), state.Program("test"), func(tx *state.Tx) error {
		if _, ok := model.APISessions.Get(tx, session); !ok {
			err := model.APISessions.Create(tx, &model.APISession{Meta: kind.Meta{ID: session}, IdentityID: "i", TokenHash: session})
			if err != nil || !passed {
				return err
			}
		}
		return model.APISessions.Edit(tx, session, func(a *model.APISession) error {
			a.ShowFactor(tx)
			return nil
		})
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.session(session)
}

// session returns an API session as it is now.
func (w *world) session(id string) posture.Session {
	s := posture.Session{ID: id}
	if api, ok := model.APISessions.Get(w.st.Snapshot(), id); ok {
		s.MFAPassedAt, s.SDK = api.FactorShown(w.st.Snapshot()), api.SDKInfo
	}
	return s
}

// submit sends bodies for an API session of the identity, all at once.
func (w *world) submit(session string, bodies ...string) posture.Outcome {
	w.t.Helper()
	var responses []posture.Response
	for _, body := range bodies {
		responses = append(responses, read(w.t, body))
	}
	return w.reports.submit(w.st.Snapshot(), session, responses, w.now)
}

// reports is what devices have reported, by API session.
type reports map[string]*model.Device

func (r reports) submit(recs kind.Reader, session string, responses []posture.Response, now time.Time) posture.Outcome {
	next, outcome := posture.Submit(recs, r[session], session, responses, now)
	if next != nil {
		r[session] = next
	}
	return outcome
}

// device judges as of now. A session without an id is that of the only device.
func (w *world) device(session posture.Session) *posture.Evaluator {
	id := session.ID
	if id == "" {
		id = "s"
	}
	return posture.NewEvaluator(posture.FactsOf(w.reports[id]), session, w.now)
}

// dataOf is what is known of devices; of the only one if none is named.
func (w *world) dataOf(sessions ...posture.Session) posture.Data {
	if len(sessions) == 0 {
		sessions = []posture.Session{{ID: "s"}}
	}
	var devices []*posture.Evaluator
	for _, s := range sessions {
		devices = append(devices, w.device(s))
	}
	return posture.DataOf(devices)
}

func (w *world) data(sessions ...posture.Session) string {
	d := w.dataOf(sessions...)
	return string(dataOutput.Append(nil, &d))
}

var responses = kind.NewInput[posture.Response]()

// read reads a body as the API does.
func read(t tester, body string) posture.Response {
	t.Helper()
	b, err := kind.ReadBody([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	r, err := responses.Read(b)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

// text is a JSON text.
func text(s string) string { return string(kind.AppendText(nil, s)) }

// sameJSON compares two JSON texts by what they say.
func sameJSON(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(parse(t, want), parse(t, got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func parse(t tester, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// Schemas of answers, in which objects have no other members.
var (
	queriesSchema = compile(posture.QueriesSchema())
	failedSchema  = compile(posture.FailedRequestSchema())
	dataOutput    = kind.NewOutput[posture.Data]()
	dataSchema    = compile(dataOutput.Schema())
)

func compile(schema kind.Schema) *openapi3.Schema {
	schemas := kind.Shared()
	schemas["it"] = closed(schema).(kind.Schema)
	data, err := json.Marshal(kind.Schema{
		"openapi": "3.0.3", "info": kind.Schema{"title": "Answers", "version": "1"}, "paths": kind.Schema{},
		"components": kind.Schema{"schemas": schemas},
	})
	if err != nil {
		panic(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		panic(err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		panic(err)
	}
	return doc.Components.Schemas["it"].Value
}

// conforms checks that a JSON text is what its schema says.
func conforms(t tester, schema *openapi3.Schema, text string) {
	t.Helper()
	if err := schema.VisitJSON(parse(t, text)); err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
}

// closed returns the schema with objects that have no other members.
func closed(v any) any {
	switch v := v.(type) {
	case kind.Schema:
		c := kind.Schema{}
		for key, value := range v {
			c[key] = closed(value)
		}
		if c["type"] == "object" && c["properties"] != nil {
			c["additionalProperties"] = false
		}
		return c
	case []any:
		var c []any
		for _, value := range v {
			c = append(c, closed(value))
		}
		return c
	}
	return v
}
