package cluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	invitation "netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/router/home"
	"netkeep.internal/internal/run/server"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// trio is three controllers of one network.
type trio struct {
	use  func(*config.Config)
	own  []func(*config.Config) // what each has for itself; empty for nothing
	all  []*servertest.Server
	dirs []string
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	etcd := etcdtest.Start(t)
	c := &trio{use: func(c *config.Config) { etcd.Settings(c) }}
	c.found(t)
	return c
}

// found starts all of them for the first time.
func (c *trio) found(t *testing.T) {
	t.Helper()
	for n := range 3 {
		c.dirs = append(c.dirs, t.TempDir())
		c.all = append(c.all, nil)
		if n == 0 {
			c.start(t, n)
		} else {
			c.start(t, n, joining(t, c.all[0]))
		}
	}
	t.Cleanup(func() {
		for n := range c.all {
			c.stop(t, n)
		}
	})
}

// start starts one of them, for the first time or again.
func (c *trio) start(t *testing.T, n int, change ...func(*config.Config)) {
	t.Helper()
	if len(c.own) > 0 {
		change = append(change, c.own[n])
	}
	s, err := servertest.Open(c.dirs[n], append([]func(*config.Config){c.use}, change...)...)
	if err != nil {
		t.Fatal(err)
	}
	c.all[n] = s
}

func (c *trio) stop(t *testing.T, n int) {
	t.Helper()
	if c.all[n] == nil {
		return
	}
	// Not with Close: on a slow machine it says that the store did not answer in time.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.all[n].Stop(ctx); err != nil {
		t.Error(err)
	}
	c.all[n] = nil
}

// rotate makes a step at one of them. While one is away it does not wait until all
// have made it.
func (c *trio) rotate(t *testing.T, n int, r server.Rotation) (server.KeysStatus, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	at := c.all[n].Config
	if before, err := server.ReadKeys(at); err == nil && slices.Contains(c.all, nil) {
		go func() {
			defer cancel()
			for ctx.Err() == nil {
				now, err := server.ReadKeys(at)
				if err == nil && now.Keys.Generation() > before.Keys.Generation() && now.Shared.Generation == now.Keys.Generation() && !pki.Proposed(filepath.Join(at.Data, "pki")) {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
		}()
	}
	return server.RotateKeys(ctx, at, r, slog.New(slog.DiscardHandler))
}

// settle waits until all that run have the keys of one generation, none of which
// waits for anybody.
func (c *trio) settle(t *testing.T, is func(server.KeysStatus) bool) {
	t.Helper()
	for _, s := range c.all {
		if s == nil {
			continue
		}
		servertest.Eventually(t, patience, "the same keys everywhere", func() bool {
			st, err := server.ReadKeys(s.Config)
			return err == nil && st.Shared != nil && st.Shared.Next == "" && len(st.Shared.Lacking) == 0 && st.Shared.Generation == st.Keys.Generation() && is(st)
		})
	}
}

// must fails if a step does.
func (c *trio) must(t *testing.T, n int, r server.Rotation) server.KeysStatus {
	t.Helper()
	st, err := c.rotate(t, n, r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return st
}

// finishes finishes a rotation as soon as nothing rests on what was before.
func (c *trio) finishes(t *testing.T, n int, what string) {
	t.Helper()
	var err error
	for end := time.Now().Add(2 * patience); time.Now().Before(end); <-time.After(200 * time.Millisecond) {
		if _, err = c.rotate(t, n, server.Rotation{What: what, Finish: true}); err == nil {
			return
		}
	}
	t.Fatalf("the rotation of %s is not finished: %v", what, err)
}

// refused wants a step to fail with words.
func (c *trio) refused(t *testing.T, n int, r server.Rotation, words ...string) {
	t.Helper()
	_, err := c.rotate(t, n, r)
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%+v: it does not say %q: %v", r, word, err)
		}
	}
}

// busy asks all controllers again and again whether an admin who is logged in is,
// and has somebody log in, until what it returns is called: nothing may fail.
func (c *trio) busy(t *testing.T, cert *tls.Certificate) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	token := c.all[0].Admin(t).Token
	for n, s := range c.all {
		if s == nil {
			continue
		}
		all.Go(func() {
			for ctx.Err() == nil {
				old, young := s.Nobody(t), s.Nobody(t)
				old.Token, old.Outage, young.Outage = token, true, true // a slow machine's store may not answer in time
				if status := old.Get("current-identity").Status; status != http.StatusOK && status != http.StatusServiceUnavailable {
					t.Errorf("a session of before has status %d at %d", status, n)
				}
				if status := young.Presenting(cert).Post(client+"authenticate?method=cert", M{}).Status; status != http.StatusOK && status != http.StatusServiceUnavailable {
					t.Errorf("a login has status %d at %d", status, n)
				}
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond): // others need the machine too
				}
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// invited is somebody who has a token and has not enrolled.
func (c *trio) invited(t *testing.T, n int) (id, token string) {
	t.Helper()
	admin := c.all[n].Admin(t)
	id = admin.Post("identities", M{"name": servertest.Unique("device"), "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
	return id, admin.Get("identities/" + id + "/enrollments").Want(http.StatusOK).List()[0]["token"].(string)
}

// enrolls has somebody enroll at one controller who was invited by another, and log
// in at all with the certificate.
func (c *trio) enrolls(t *testing.T, n int, token string) *tls.Certificate {
	t.Helper()
	cert := enroll(t, c.all[n], token)
	c.knows(t, cert)
	return cert
}

func (c *trio) knows(t *testing.T, cert *tls.Certificate) {
	t.Helper()
	for _, s := range c.all {
		if s == nil {
			continue
		}
		servertest.Eventually(t, patience, "a login with the certificate", func() bool {
			young := s.Nobody(t)
			young.Outage = true // a slow machine's store may not answer in time
			return young.Presenting(cert).Post(client+"authenticate?method=cert", M{}).Status == http.StatusOK
		})
	}
}

// issuer is the key of the CA that signed a certificate.
func issuer(t *testing.T, cert *tls.Certificate) string {
	t.Helper()
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(leaf.AuthorityKeyId)
}

// addRouter runs a router of ours until the end of the test.
func (c *trio) addRouter(t *testing.T) {
	t.Helper()
	admin := c.all[0].Admin(t)
	id := admin.Post("edge-routers", M{"name": servertest.Unique("router")}).Want(http.StatusCreated).ID()
	inv, err := invitation.Read(admin.Get("edge-routers/" + id).Want(http.StatusOK).Data()["enrollmentJwt"].(string))
	if err != nil {
		t.Fatal(err)
	}
	set, dir := home.DefaultSettings(), filepath.Join(t.TempDir(), "router")
	set.Listen, set.Advertise, set.Metrics = "127.0.0.1:0", []string{"127.0.0.1"}, home.MetricsOff
	set.Fill()
	if err := home.Enroll(t.Context(), dir, inv, set, false, invitation.Options{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	place, err := home.Open(dir, home.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	running, err := place.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(running.Stop(context.Background()), place.Close()); err != nil {
			t.Error(err)
		}
	})
}

// routed waits until the router is connected to all controllers that run.
func (c *trio) routed(t *testing.T) {
	t.Helper()
	for _, s := range c.all {
		if s == nil {
			continue
		}
		servertest.Eventually(t, patience, "a router at each controller", func() bool {
			for _, m := range s.Admin(t).Get("cluster/members").Want(http.StatusOK).List() {
				if m["self"] == true {
					return m["routers"] == 1.0
				}
			}
			return false
		})
	}
}

func always(server.KeysStatus) bool { return true }

// TestRotateIntermediateEverywhere rotates the intermediate CA at one of three
// controllers while they are used: all sign with the new one.
func TestRotateIntermediateEverywhere(t *testing.T) {
	beside(t)
	c := newTrio(t)
	c.settle(t, always)
	_, token := c.invited(t, 0)
	before := c.enrolls(t, 1, token)
	stop := c.busy(t, before)
	st := c.must(t, 1, server.Rotation{What: pki.IntermediateCA})
	c.settle(t, func(now server.KeysStatus) bool { return now.Intermediate.Equal(st.Intermediate) })
	if st.Shared == nil || len(st.Shared.Lacking) > 0 || len(st.Shared.Controllers) != 3 || st.Keys.Generation() != 2 {
		t.Errorf("it ends with %+v", st.Shared)
	}
	for n := range c.all {
		_, token := c.invited(t, n)
		if after := c.enrolls(t, (n+1)%3, token); issuer(t, after) == issuer(t, before) {
			t.Error("the intermediate CA of before signs")
		}
	}
	c.knows(t, before)
	stop()
	members := c.all[2].Admin(t).Get("cluster/members").Want(http.StatusOK).List()
	for _, m := range members {
		if m["keyGeneration"] != 2.0 {
			t.Errorf("a controller is said to have %v", m)
		}
	}
	if len(members) != 3 {
		t.Errorf("there are %d controllers", len(members))
	}
}

// TestRotateRootEverywhere rotates the root CA while one of three controllers is
// down: it is trusted, and signs when that one is back and has it. It is finished
// when nobody lacks anything.
func TestRotateRootEverywhere(t *testing.T) {
	beside(t)
	c := newTrio(t)
	c.settle(t, always)
	c.addRouter(t)
	c.routed(t)
	old := c.must(t, 0, server.Rotation{What: pki.IntermediateCA}).Root
	c.settle(t, always)
	id, token := c.invited(t, 0)
	before := c.enrolls(t, 1, token)
	c.stop(t, 2)
	stop := c.busy(t, before)
	st := c.must(t, 0, server.Rotation{What: pki.RootCA})
	servertest.Eventually(t, patience, "two that have the new root CA", func() bool {
		var err error
		st, err = server.ReadKeys(c.all[0].Config)
		return err == nil && st.Shared.Next == pki.RootCA && len(st.Shared.Lacking) == 1
	})
	if !st.Root.Equal(old) || st.FormerRoot == nil {
		t.Error("the new root CA signs although one controller lacks it")
	}
	away := st.Shared.Lacking[0]
	for _, r := range []server.Rotation{{What: pki.IntermediateCA}, {What: pki.RootCA}, {What: pki.RootCA, Finish: true, Force: true}} {
		c.refused(t, 0, r, "is not used yet", "netkeep keys status")
	}
	c.refused(t, 1, server.Rotation{What: pki.SessionSecret, Force: true}, "nothing of the session waits")
	stop()

	c.start(t, 2)
	stop = c.busy(t, before)
	c.settle(t, func(now server.KeysStatus) bool { return now.Root.Equal(st.FormerRoot) && now.Rotating() })
	c.knows(t, before)
	_, token = c.invited(t, 2)
	after := c.enrolls(t, 0, token)
	if issuer(t, after) == issuer(t, before) {
		t.Error("the root CA of before signs")
	}
	stop()
	stop = c.busy(t, after)
	// Who has a certificate of the one before keeps it from being finished.
	servertest.Eventually(t, patience, "a count of who has not followed", func() bool {
		_, err := c.rotate(t, 1, server.Rotation{What: pki.RootCA, Finish: true})
		return err != nil && strings.Contains(err.Error(), "1 identities have certificates of the root CA before")
	})
	c.all[0].Admin(t).Delete("identities/" + id).Want(http.StatusOK)
	c.finishes(t, 1, pki.RootCA)
	c.settle(t, func(now server.KeysStatus) bool { return !now.Rotating() && len(now.Retired) == 1 })
	c.knows(t, after)
	stop()
	c.routed(t)
	for n, s := range c.all {
		if _, err := os.Stat(filepath.Join(s.Config.Data, "pki", "former-root.key")); !os.IsNotExist(err) {
			t.Errorf("the key of the root CA of before is still at %d", n)
		}
	}
	if st, err := server.ReadKeys(c.all[0].Config); err != nil || !slices.ContainsFunc(st.Shared.Controllers, func(k server.ControllerKeys) bool { return k.ID == away }) {
		t.Errorf("the one that was away is not named: %v", err)
	}
}

// TestRotateWithout uses a new intermediate CA without a controller that is away, as
// it is told to. That one gets all it has missed before it serves.
func TestRotateWithout(t *testing.T) {
	beside(t)
	c := newTrio(t)
	c.settle(t, always)
	c.stop(t, 1)
	c.must(t, 2, server.Rotation{What: pki.IntermediateCA})
	c.must(t, 2, server.Rotation{What: pki.IntermediateCA, Force: true})
	servertest.Eventually(t, patience, "the new intermediate CA at both", func() bool {
		a, err := server.ReadKeys(c.all[0].Config)
		b, err2 := server.ReadKeys(c.all[2].Config)
		return err == nil && err2 == nil && a.Keys.Generation() == 2 && b.Keys.Generation() == 2
	})
	c.refused(t, 2, server.Rotation{What: pki.RootCA}, "lacks the keys that were changed last", "netkeep cluster remove")
	_, token := c.invited(t, 0)
	cert := c.enrolls(t, 2, token)
	c.start(t, 1)
	c.all[1].Nobody(t).Presenting(cert).Post(client+"authenticate?method=cert", M{}).Want(http.StatusOK)
	c.settle(t, func(st server.KeysStatus) bool { return st.Keys.Generation() == 2 })
}

// TestRotateSecretsEverywhere rotates the keys of sessions and of seals: what was
// made with those of before is good until they are finished, at each controller.
func TestRotateSecretsEverywhere(t *testing.T) {
	atOnce(t)
	c := newTrio(t)
	c.settle(t, always)
	_, early := c.invited(t, 0)
	old := c.all[1].Login(t, servertest.Username, servertest.Password)
	host := addService(t, c.all[0])
	router := host.connect(t, c.all[1].RouterAddress())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if got, err := router.Host(ctx, message.CreateTerminator{Address: "terminator1", SessionToken: host.hosting}); err != nil || got.Result != message.TerminatorOK {
		t.Fatalf("hosting: %+v, %v", got, err)
	}
	over := func() *scripted.Router {
		select {
		case <-router.Done(): // a slow machine's store has not heard of the controller in time
			router = host.connect(t, c.all[1].RouterAddress())
		default:
		}
		return router
	}
	host.dialOver(t, over)
	_, token := c.invited(t, 2)
	stop := c.busy(t, c.enrolls(t, 0, token))
	c.must(t, 0, server.Rotation{What: pki.SessionSecret})
	c.must(t, 1, server.Rotation{What: pki.SealSecret})
	c.settle(t, func(st server.KeysStatus) bool {
		return st.Keys.Turning(pki.SealSecret) && st.Keys.Turning(pki.SessionSecret)
	})
	host.dialOver(t, over)
	_, middle := c.invited(t, 1)
	c.enrolls(t, 2, early)
	stop()
	young := c.all[2].Login(t, servertest.Username, servertest.Password)

	// A session of before keeps it from being finished.
	servertest.Eventually(t, patience, "a count of sessions", func() bool {
		_, err := c.rotate(t, 2, server.Rotation{What: pki.SessionSecret, Finish: true})
		return err != nil && strings.Contains(err.Error(), "sessions have tokens of the key of before")
	})
	c.must(t, 2, server.Rotation{What: pki.SessionSecret, Finish: true, Force: true})
	c.finishes(t, 0, pki.SealSecret)
	c.settle(t, func(st server.KeysStatus) bool {
		return !st.Keys.Turning(pki.SealSecret) && !st.Keys.Turning(pki.SessionSecret)
	})
	for _, s := range c.all {
		eventually(t, as(t, s, old), "current-identity", http.StatusUnauthorized)
		eventually(t, as(t, s, young), "current-identity", http.StatusOK)
	}
	c.enrolls(t, 0, middle)
	for n := range c.all {
		c.stop(t, n)
	}
	for n := range c.all {
		c.start(t, n)
	}
	eventually(t, as(t, c.all[1], young), "current-identity", http.StatusOK)
}
