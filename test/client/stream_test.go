package client_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/machine"
	"netkeep.internal/test/servertest"
)

const updatesStream = root + "current-api-session/service-updates/stream"

// TestUpdatesAreTold has a client told of what changes for it, and of nothing else,
// with the time that it would have been given if it had asked.
func TestUpdatesAreTold(t *testing.T) {
	s := newScene(t)
	stream := s.me.Stream(updatesStream)
	expect := func(why string) {
		t.Helper()
		e, want := stream.Next(), s.updated()
		if e.Name != "service-updates" || e.Data["lastChangeAt"] != want || e.ID != want {
			t.Errorf("%s: told %+v, want %v", why, e, want)
		}
	}
	expect("at once")
	service := s.service() // which nobody may use yet
	newScene(t).policy("Dial")
	s.policy("Dial")
	expect("a policy")
	s.admin.Patch("services/"+service, M{"encryptionRequired": false}).Want(200)
	expect("a service")
	s.admin.Patch("identities/"+s.user.ID, M{"roleAttributes": []string{}}).Want(200)
	expect("a role that is lost")

	// Who goes on where it was is told what came meanwhile, once.
	stream.Close()
	at := s.updated().(string)
	stream = s.me.With("Last-Event-ID", at).Stream(updatesStream)
	s.admin.Patch("identities/"+s.user.ID, M{"roleAttributes": []string{s.role}}).Want(200)
	expect("after a while")
	stream = s.me.With("Last-Event-ID", at).Stream(updatesStream)
	expect("what came while nobody listened")
}

// TestUpdatesArePrompt measures how long it takes from a change to the word of it.
func TestUpdatesArePrompt(t *testing.T) {
	s := newScene(t)
	s.service()
	stream := s.me.Stream(updatesStream)
	stream.Next()
	for range 5 {
		watch := machine.Begin(t)
		id := s.policy("Dial")
		stream.Next()
		s.admin.Delete("service-policies/" + id).Want(200)
		stream.Next()
		if took, most := watch.Took(200 * time.Millisecond); took > most {
			t.Errorf("two changes and the word of them took %s, more than %s", took, most)
		}
	}
}

// TestStreamsEndWithTheirSession takes away what a stream rests on.
func TestStreamsEndWithTheirSession(t *testing.T) {
	for name, take := range map[string]func(s *scene){
		"logout":   func(s *scene) { s.me.Delete(root + "current-api-session").Want(200) },
		"disabled": func(s *scene) { s.admin.Post("identities/"+s.user.ID+"/disable", M{"durationMinutes": 0}).Want(200) },
		"deleted":  func(s *scene) { s.admin.Delete("identities/" + s.user.ID).Want(200) },
		"ended": func(s *scene) {
			id := s.me.Get(root + "current-api-session").Want(200).ID()
			s.admin.Delete("api-sessions/" + id).Want(200)
		},
		"factor": func(s *scene) {
			policy := s.add("auth-policies", M{
				"primary": M{
					"cert":   M{"allowed": false, "allowExpiredCerts": false},
					"extJwt": M{"allowed": false, "allowedSigners": []string{}},
					"updb":   M{"allowed": true, "minPasswordLength": 5, "requireMixedCase": false, "requireNumberChar": false, "requireSpecialChar": false, "maxAttempts": 0, "lockoutDurationMinutes": 0},
				},
				"secondary": M{"requireTotp": true, "requireExtJwtSigner": nil},
			})
			s.admin.Patch("identities/"+s.user.ID, M{"authPolicyId": policy}).Want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			other := newScene(t)
			bystander := other.me.Stream(updatesStream)
			bystander.Next()
			stream := s.me.Stream(updatesStream)
			stream.Next()
			take(s)
			stream.Ends("UNAUTHORIZED")
			other.service()
			other.policy("Dial")
			bystander.Next() // it is told of what changes, so it goes on
		})
	}
}

// TestStreamsAreBounded gives one identity as many streams as it may have, and a
// controller that stops while there are some.
func TestStreamsAreBounded(t *testing.T) {
	few, err := servertest.Open(t.TempDir(), func(c *config.Config) { c.Limits.IdentityStreams = 2 })
	if err != nil {
		t.Fatal(err)
	}
	user := few.AddUser(t, false)
	me := few.Nobody(t)
	me.Token = me.Post(root+"authenticate?method=password", M{"username": user.Username, "password": user.Password}).Want(200).Data()["token"].(string)
	first, second := me.Stream(updatesStream), me.Stream(updatesStream)
	refused := me.Get(updatesStream).Want(http.StatusTooManyRequests)
	if said, _ := refused.At("error.message").(string); !strings.Contains(said, "end one of them") {
		t.Errorf("the refusal says %q", said)
	}
	few.Admin(t).Stream(updatesStream).Next()
	second.Close()
	servertest.Eventually(t, soon, "a stream that was closed makes room", func() bool {
		return metric(t, few, `netkeep_streams_ended_total{operation="streamServiceUpdates",reason="left"} 1`)
	})
	me.Stream(updatesStream).Next()
	if !metric(t, few, `netkeep_streams{operation="streamServiceUpdates"} 3`) {
		t.Error("the streams that are open are not counted")
	}
	if err := few.Close(); err != nil {
		t.Fatal(err)
	}
	first.Ends("UNAVAILABLE")
}

// metric reports whether monitoring is told a line.
func metric(t *testing.T, s *servertest.Server, line string) bool {
	t.Helper()
	resp, err := http.Get("http://" + s.Metrics().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(all), line)
}
