package fabric

import (
	"testing"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestReportsOfOthers has a router report of devices that are none of its
// clients'.
func TestReportsOfOthers(t *testing.T) {
	s := servertest.Start(t)
	admin, user := s.Admin(t), s.AddUser(t, false)
	mine, elsewhere := addRouter(t, s), addRouter(t, s)
	allow(t, s, "@"+user.ID, "@"+mine.ID)
	me := s.Login(t, user.Username, user.Password)
	here, there := mine.Connect(t), elsewhere.Connect(t)
	body := message.Marshal(&message.Posture{Reports: []message.PostureReport{{Domain: &message.PostureDomain{Name: "corp"}}}})
	report := func(c *scripted.Router, token string, body []byte) (typ int32, success bool) {
		t.Helper()
		f := &wire.Frame{Type: message.TypeDeviceReport, Headers: wire.Headers{}, Body: body}
		f.Headers.SetText(message.HeaderAPISessionToken, token)
		answer, err := c.Request(t.Context(), f)
		must(t, err)
		return answer.Type, answer.Headers.Bool(message.HeaderSuccess)
	}
	domain := func() any {
		t.Helper()
		return admin.Get(management + "identities/" + user.ID + "/posture-data").Want(200).At("data.domain.domain")
	}
	for name, try := range map[string]func() (int32, bool){
		"a router that the client may not use": func() (int32, bool) { return report(there, me.Token, body) },
		"a token of nobody":                    func() (int32, bool) { return report(here, "none", body) },
		"no token":                             func() (int32, bool) { return report(here, "", body) },
		"more than may be":                     func() (int32, bool) { return report(here, me.Token, make([]byte, 256<<10+1)) },
		"what cannot be read":                  func() (int32, bool) { return report(here, me.Token, []byte{0xff}) },
	} {
		if typ, ok := try(); typ != message.TypeResult || ok {
			t.Errorf("%s: answered with %d, %v", name, typ, ok)
		}
	}
	if got := domain(); got != "" {
		t.Errorf("it is believed that the device is of %v", got)
	}
	if typ, ok := report(here, me.Token, body); typ != message.TypeResult || !ok {
		t.Errorf("its own: answered with %d, %v", typ, ok)
	}
	if got := domain(); got != "corp" {
		t.Errorf("the device is of %v", got)
	}
}
