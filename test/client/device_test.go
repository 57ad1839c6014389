package client_test

import (
	"testing"

	"netkeep.internal/internal/model"
	"netkeep.internal/test/servertest"
)

const corp, home = "corp.example.com", "home.example.com"

// guarded is a scene with a service for devices in a Windows domain.
func guarded(t *testing.T) (s *scene, service, check string) {
	t.Helper()
	return checked(t, M{"typeId": "DOMAIN", "domains": []string{corp}})
}

// use has another API session of the person do something.
func (s *scene) use(c *servertest.Client, do func()) {
	me := s.me
	s.me = c
	do()
	s.me = me
}

// TestEveryDeviceForItself has somebody with two devices of which one is good,
// at the same time and one after the other.
func TestEveryDeviceForItself(t *testing.T) {
	s, service, check := guarded(t)
	s.report(M{"id": check, "typeId": "DOMAIN", "domain": corp})
	session := s.dial(service).Want(201).ID()
	other := s.login()
	s.use(other, func() {
		if ok, _ := s.passing(service); ok {
			t.Error("a device of which nothing is known passes by what another one has reported")
		}
		s.dial(service).Fails(409, "INVALID_POSTURE", "")
		s.report(M{"id": check, "typeId": "DOMAIN", "domain": home})
		s.dial(service).Fails(409, "INVALID_POSTURE", "")
	})
	s.me.Get(root + "sessions/" + session).Want(200) // which is the good device's own
	s.dial(service).Want(201)
	s.use(other, func() {
		s.report(M{"id": check, "typeId": "DOMAIN", "domain": corp})
		s.dial(service).Want(201)
	})
	s.me.Delete(root + "current-api-session").Want(200)
	s.use(s.login(), func() { s.dial(service).Fails(409, "INVALID_POSTURE", "") })
	s.use(other, func() { s.dial(service).Want(201) })
}

// TestPostureDataOfDevices shows the latest of what the devices of somebody
// have reported, for as long as they are there.
func TestPostureDataOfDevices(t *testing.T) {
	s, _, check := guarded(t)
	shown := func() M { return s.admin.Get("identities/" + s.user.ID + "/posture-data").Want(200).Data() }
	s.report(M{"id": check, "typeId": "DOMAIN", "domain": corp})
	s.report(M{"id": check, "typeId": "OS", "type": "Linux", "version": "5.4.0", "build": "1"})
	s.report(M{"id": "a", "typeId": "PROCESS", "path": "/bin/a", "isRunning": true, "hash": "1"})
	other := s.login()
	s.use(other, func() {
		s.report(M{"id": check, "typeId": "DOMAIN", "domain": home})
		s.report(M{"id": "a", "typeId": "PROCESS", "path": "/bin/a", "isRunning": true, "hash": "2"})
		s.report(M{"id": "b", "typeId": "PROCESS", "path": "/bin/b", "isRunning": true, "hash": "3"})
	})
	data := shown()
	if data["domain"].(M)["domain"] != home || data["os"].(M)["type"] != "Linux" {
		t.Errorf("the latest is %v", data)
	}
	if p := data["processes"].([]any); len(p) != 2 || p[0].(M)["binaryHash"] != "2" || p[1].(M)["binaryHash"] != "3" {
		t.Errorf("the programs are %v", p)
	}
	if n := len(data["apiSessionPostureData"].(M)); n != 2 {
		t.Errorf("there are %d API sessions", n)
	}
	other.Delete(root + "current-api-session").Want(200)
	data = shown()
	if data["domain"].(M)["domain"] != corp || len(data["processes"].([]any)) != 1 {
		t.Errorf("what is left of one device is %v", data)
	}
	s.me.Delete(root + "current-api-session").Want(200)
	if data = shown(); data["domain"].(M)["domain"] != "" || data["os"].(M)["type"] != "" || len(data["processes"].([]any)) != 0 {
		t.Errorf("what is left of no device is %v", data)
	}
}

// TestSameReportAgain reports the same over and over, which costs no write.
func TestSameReportAgain(t *testing.T) {
	s, service, check := guarded(t)
	second := s.add("posture-checks", M{"typeId": "DOMAIN", "domains": []string{corp}})
	reports := []M{
		{"id": check, "typeId": "DOMAIN", "domain": corp}, {"id": second, "typeId": "DOMAIN", "domain": corp},
		{"id": check, "typeId": "OS", "type": "Linux", "version": "5.4.0", "build": "1"},
		{"id": check, "typeId": "MAC", "macAddresses": []string{"00:11:22:33:44:55"}},
		{"id": check, "typeId": "PROCESS", "path": "/bin/a", "isRunning": true, "hash": "1", "signerFingerprints": []string{"02"}},
	}
	send := func() { s.me.Post(root+"posture-response-bulk", reports).Want(200) }
	send()
	s.dial(service).Want(201)
	devices := func() (rev any) {
		for d, at := range shared.State().Snapshot().Stored(model.Devices.Def) {
			if d.Base().ID == s.me.Get(root+"current-api-session").ID() {
				rev = at
			}
		}
		return rev
	}
	before := devices()
	if before == nil {
		t.Fatal("nothing is stored of the device")
	}
	for range 20 {
		send()
	}
	if after := devices(); after != before {
		t.Errorf("the same reports were stored again: %v, %v before", after, before)
	}
	reports[2]["version"] = "5.4.1"
	if send(); devices() == before {
		t.Error("another report was not stored")
	}
}
