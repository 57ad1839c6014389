package cluster_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	invitation "netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/router/home"
	"netkeep.internal/internal/run/cli"
	"netkeep.internal/internal/tool/layout"
	"netkeep.internal/overlay"
	"netkeep.internal/test/etcdtest"
	"netkeep.internal/test/servertest"
)

const revision = "netkeep-revision"

// two starts two controllers of one network, and waits until each knows of the
// other. The first is not stopped by itself.
func two(t *testing.T) (a, b *servertest.Server) {
	t.Helper()
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a, err := servertest.Open(t.TempDir(), use)
	if err != nil {
		t.Fatal(err)
	}
	b = closing(t, second(t, a, use))
	for _, s := range []*servertest.Server{a, b} {
		servertest.Eventually(t, 30*time.Second, "two controllers", func() bool {
			return len(s.Nobody(t).Get(client+"controllers").Want(http.StatusOK).List()) == 2
		})
	}
	return a, b
}

func stop(t *testing.T, s *servertest.Server) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReadOwnWrites changes something at one of two controllers and looks at the
// other at once: a session is good there, and what the answer's revision stands for
// is there.
func TestReadOwnWrites(t *testing.T) {
	beside(t)
	a, b := two(t)
	closing(t, a)
	for i := range 25 {
		here, there := a, b
		if i%2 == 1 {
			here, there = b, a
		}
		admin := here.Login(t, servertest.Username, servertest.Password)
		as(t, there, admin).Get("current-identity").Want(http.StatusOK)
		made := admin.Post("identities", M{"name": fmt.Sprint("phone", i), "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated)
		seen := as(t, there, admin).With(revision, made.Header.Get(revision))
		seen.Get("identities/" + made.ID()).Want(http.StatusOK)
		admin.Delete("identities/" + made.ID()).Want(http.StatusOK)
	}
	for _, path := range []string{"identities", client + "version", "/fabric/v1/links", "identities/nobody"} {
		if rev, err := strconv.Atoi(a.Admin(t).Get(path).Header.Get(revision)); err != nil || rev < 25 {
			t.Errorf("%s is answered with the revision %d (%v)", path, rev, err)
		}
	}
	if told := a.Nobody(t).Get("identities").Want(http.StatusUnauthorized).Header.Get(revision); told != "" {
		t.Errorf("a stranger who is turned away is told the revision %s", told)
	}
}

// TestFreshToken enrolls at one of two controllers with a token that the other has
// just given out, and logs in at the other with the certificate.
func TestFreshToken(t *testing.T) {
	beside(t)
	a, b := two(t)
	closing(t, a)
	admin := a.Admin(t)
	for i := range 10 {
		id := admin.Post("identities", M{"name": fmt.Sprint("phone", i), "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
		token := admin.Get("identities/" + id + "/enrollments").Want(http.StatusOK).List()[0]["token"].(string)
		cert := enroll(t, b, token)
		a.Nobody(t).Presenting(cert).Post(client+"authenticate?method=cert", M{}).Want(http.StatusOK)
	}
}

// TestBehind has a controller that does not hear of what others write: who has seen
// it is not told less, and who shows what was never there is told so.
func TestBehind(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	line := etcd.NewLine(t)
	a := servertest.Start(t, func(c *config.Config) { etcd.Settings(c) })
	b := stopping(t, second(t, a, func(c *config.Config) {
		etcd.Settings(c, line)
		c.Store.Grace, c.Cluster.Announce = 10*time.Minute, true
	}))
	for s, want := range map[*servertest.Server][]string{a: nil, b: {"HA_CONTROLLER"}} {
		if got := texts(s.Nobody(t).Get(client + "version").Want(http.StatusOK).Data()["capabilities"]); !slices.Equal(got, want) {
			t.Errorf("a controller is said to be capable of %q, want %q", got, want)
		}
	}
	admin := a.Admin(t)
	there := as(t, b, admin)
	there.Get("identities").Want(http.StatusOK)
	now, err := strconv.Atoi(there.Get("identities").Header.Get(revision))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		strconv.Itoa(now + 1000000): "is of another store",
		"many":                      "must be the number",
		"-1":                        "must be the number",
		"":                          "must be the number",
	} {
		if got := there.With(revision, text).Get("identities").Want(http.StatusBadRequest); !strings.Contains(string(got.Raw), want) || !strings.Contains(string(got.Raw), revision) {
			t.Errorf("the revision %q is refused with %s", text, got.Raw)
		}
	}
	there.With(revision, "1", "1").Get("identities").Want(http.StatusBadRequest)

	line.Cut()
	made := admin.Post("identities", M{"name": "phone", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated)
	token := admin.Get("identities/" + made.ID() + "/enrollments").Want(http.StatusOK).List()[0]["token"].(string)
	there.Outage = true
	there.Get("identities").Want(http.StatusOK) // what is known to whom it is enough
	seen, newcomer, stranger := there.With(revision, made.Header.Get(revision)), as(t, b, a.Login(t, servertest.Username, servertest.Password)), b.Nobody(t)
	newcomer.Outage, stranger.Outage, stranger.Token = true, true, "01234567-89ab-4def-8123-456789abcdef"
	invited := b.Nobody(t).With("Content-Type", "text/plain")
	invited.Outage = true
	var asking sync.WaitGroup
	for i, ask := range []func() *servertest.Answer{
		func() *servertest.Answer { return seen.Get("identities/" + made.ID()) },
		func() *servertest.Answer { return newcomer.Get("current-identity") },
		func() *servertest.Answer { return stranger.Get("current-identity") },
		func() *servertest.Answer {
			return invited.Post(client+"enroll?method=ott&token="+token, servertest.Raw("x"))
		},
	} {
		asking.Go(func() {
			got, says := ask(), "cannot find out at present"
			if i == 0 {
				says = "does not have yet what the client has seen"
			}
			if got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" || !strings.Contains(string(got.Raw), says) {
				t.Errorf("who may have seen more is told %d, %s", got.Status, got.Raw)
			}
		})
	}
	asking.Wait()

	line.Mend()
	servertest.Eventually(t, 60*time.Second, "the session of another controller", func() bool {
		got := newcomer.Get("current-identity").Status
		if got == http.StatusUnauthorized {
			t.Fatal("it does not know a session, and says so")
		}
		return got == http.StatusOK
	})
	eventually(t, seen, "identities/"+made.ID(), http.StatusOK)
	stranger.Get("current-identity").Want(http.StatusUnauthorized)
	enroll(t, b, token)
}

// TestInvented has strangers make tokens up, many at a time: all are refused, and
// those who have a session of another controller get through beside them.
func TestInvented(t *testing.T) {
	beside(t)
	a, b := two(t)
	closing(t, a)
	var strangers sync.WaitGroup
	over := make(chan struct{})
	for i := range 20 {
		strangers.Go(func() {
			c := b.Nobody(t)
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				c.Token = fmt.Sprintf("%08x-0000-4000-8000-%012x", i, n)
				if got := c.Get(client + "current-identity"); got.Status != http.StatusUnauthorized {
					t.Errorf("an invented token gets %d", got.Status)
					return
				}
			}
		})
	}
	for range 10 {
		as(t, b, a.Login(t, servertest.Username, servertest.Password)).Get("current-identity").Want(http.StatusOK)
	}
	close(over)
	strangers.Wait()
}

// said is what a token says.
func said(t *testing.T, token string) M {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims M
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func texts(v any) (list []string) {
	all, _ := v.([]any)
	for _, one := range all {
		list = append(list, one.(string))
	}
	return list
}

// TestAnyController invites at one of two controllers, which is gone before anybody
// comes: all enroll at the other, and go on from there.
func TestAnyController(t *testing.T) {
	beside(t)
	a, b := two(t)
	admin := a.Admin(t)
	apis := []string{"https://" + a.Address(), "https://" + b.Address()}
	invite := func(kind string, body M) string {
		id := admin.Post(kind, body).Want(http.StatusCreated).ID()
		if jwt, ok := admin.Get(kind + "/" + id).Data()["enrollmentJwt"].(string); ok {
			return jwt
		}
		return admin.Get("identities/" + id + "/enrollments").List()[0]["jwt"].(string)
	}
	phone := invite("identities", M{"name": "phone", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}})
	several := invite("identities", M{"name": "several", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}})
	ours, theirs := invite("edge-routers", M{"name": "ours"}), invite("edge-routers", M{"name": "theirs"})
	if got := texts(said(t, phone)["ctrls"]); !slices.Equal(got, apis) {
		t.Errorf("the token of an identity names %q", got)
	}
	control := []string{"tls:" + a.RouterAddress(), "tls:" + b.RouterAddress()}
	if got := texts(said(t, ours)["ctrls"]); !slices.Equal(got, control) {
		t.Errorf("the token of a router names %q", got)
	}
	dir := t.TempDir()
	stop(t, a)

	file := filepath.Join(dir, "phone.json")
	if err := overlay.Enroll(t.Context(), phone, file); err != nil {
		t.Fatal(err)
	}
	is := identityAt(t, file)
	if is["ztAPI"] != apis[1]+"/edge/client/v1" || is["ztAPIs"] != nil || len(texts(is["netkeepAPIs"])) != 2 {
		t.Errorf("the file names %v, %v and %v", is["ztAPI"], is["ztAPIs"], is["netkeepAPIs"])
	}
	all := filepath.Join(dir, "several.json")
	if code, text := command(t, dir, "enroll", several, "-o", all, "--all-controllers"); code != 0 {
		t.Fatal(text)
	}
	if got := texts(identityAt(t, all)["ztAPIs"]); len(got) != 2 {
		t.Errorf("the file names %q", got)
	}
	enrollRouters(t, dir, ours, theirs)

	// The first of the file is the one that is gone.
	is["ztAPI"] = apis[0] + "/edge/client/v1"
	text, err := json.Marshal(is)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	network, err := overlay.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := network.Close(); err != nil {
		t.Error(err)
	}
}

// enrollRouters enrolls a router of ours and one of others.
func enrollRouters(t *testing.T, dir, ours, theirs string) {
	t.Helper()
	inv, err := invitation.Read(ours)
	if err != nil {
		t.Fatal(err)
	}
	set := home.DefaultSettings()
	set.Listen, set.Advertise = "127.0.0.1:0", []string{"127.0.0.1"}
	set.Fill()
	if err := home.Enroll(t.Context(), filepath.Join(dir, "router"), inv, set, false, invitation.Options{Now: time.Now}); err != nil {
		t.Error(err)
	}
	if inv, err = invitation.Read(theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Enroll(t.Context(), inv, layout.Request{Dir: dir, Now: time.Now}); err != nil {
		t.Error(err)
	}
}

// identityAt reads an identity's file.
func identityAt(t *testing.T, path string) (is M) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &is); err != nil {
		t.Fatal(err)
	}
	return is
}

// TestFalseController leads an invitation to a controller of another network: it is
// sent nothing.
func TestFalseController(t *testing.T) {
	beside(t)
	a, b := two(t)
	id := a.Admin(t).Post("identities", M{"name": "phone", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
	jwt := a.Admin(t).Get("identities/" + id + "/enrollments").List()[0]["jwt"].(string)
	stop(t, a)
	other := servertest.Start(t)
	parts := strings.Split(jwt, ".")
	claims := said(t, jwt)
	claims["ctrls"] = []string{"https://" + other.Address()}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	parts[1] = base64.RawURLEncoding.EncodeToString(text)
	err = overlay.Enroll(t.Context(), strings.Join(parts, "."), filepath.Join(t.TempDir(), "phone.json"))
	if err == nil || !strings.Contains(err.Error(), "is not of the network that the token is for") {
		t.Errorf("it ends with %v", err)
	}
	for _, line := range other.Log() {
		if strings.Contains(line, `"operation":"enroll`) {
			t.Errorf("it was asked: %s", line)
		}
	}
	if _, known := claims["netkeepRoots"]; !known {
		t.Error("the token names no root CA")
	}
	b.Nobody(t).Get(client + "version").Want(http.StatusOK)
}

// command runs a command in this process, with settings below a directory.
func command(t *testing.T, dir string, args ...string) (code int, text string) {
	t.Helper()
	return commandAt(t, dir, time.Now, args...)
}

// commandAt does that at another time.
func commandAt(t *testing.T, dir string, now func() time.Time, args ...string) (code int, text string) {
	t.Helper()
	var out bytes.Buffer
	code = cli.Main(t.Context(), cli.Env{
		Program: "netkeep", Args: args, Environ: []string{"HOME=" + dir, "NETKEEP_PASSWORD=" + servertest.Password},
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Now: now,
	})
	return code, out.String()
}

// TestCommandGoesOn logs in at one of two controllers, which is gone then: commands
// go on at the other, also one that logs in again.
func TestCommandGoesOn(t *testing.T) {
	beside(t)
	a, b := two(t)
	dir := t.TempDir()
	netkeep := func(args ...string) string {
		t.Helper()
		code, text := command(t, dir, args...)
		if code != 0 {
			t.Fatalf("netkeep %s: %s", strings.Join(args, " "), text)
		}
		return text
	}
	netkeep("login", a.URL, "--ca", filepath.Join(a.Config.Data, "pki", "root.crt"))
	netkeep("create", "identity", "before")
	stop(t, a)
	if text := netkeep("list", "identities"); !strings.Contains(text, "before") {
		t.Errorf("it lists %s", text)
	}
	netkeep("create", "identity", "after")
	netkeep("login", "--username", servertest.Username)
	if text := netkeep("list", "identities"); !strings.Contains(text, "after") {
		t.Errorf("it lists %s", text)
	}
	if got := b.Admin(t).Get(`identities?filter=name%3D%22after%22`).Want(http.StatusOK).List(); len(got) != 1 {
		t.Errorf("it was made %d times", len(got))
	}
}

// TestCommandLearns logs in while there is one controller. It is gone after another
// came: commands go on there.
func TestCommandLearns(t *testing.T) {
	beside(t)
	etcd := etcdtest.Start(t)
	use := func(c *config.Config) { etcd.Settings(c) }
	a, err := servertest.Open(t.TempDir(), use)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	later := func() time.Time { return time.Now().Add(10 * time.Minute) }
	for _, args := range [][]string{{"login", a.URL, "--ca", filepath.Join(a.Config.Data, "pki", "root.crt")}, {"list", "identities"}} {
		if code, text := command(t, dir, args...); code != 0 {
			t.Fatal(text)
		}
	}
	closing(t, second(t, a, use))
	servertest.Eventually(t, 30*time.Second, "two controllers", func() bool {
		return len(a.Nobody(t).Get(client+"controllers").Want(http.StatusOK).List()) == 2
	})
	for range 2 {
		if code, text := commandAt(t, dir, later, "list", "identities"); code != 0 {
			t.Fatal(text)
		}
		if a != nil {
			stop(t, a)
			a = nil
		}
	}
}

// TestClientGoesOn has a client of ours whose file names one of two controllers,
// which is gone once it has logged in: it goes on with the other, under the same
// session.
func TestClientGoesOn(t *testing.T) {
	beside(t)
	a, b := two(t)
	id := a.Admin(t).Post("identities", M{"name": "phone", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
	jwt := a.Admin(t).Get("identities/" + id + "/enrollments").List()[0]["jwt"].(string)
	file := filepath.Join(t.TempDir(), "phone.json")
	if err := overlay.Enroll(t.Context(), jwt, file); err != nil {
		t.Fatal(err)
	}
	is := identityAt(t, file)
	delete(is, "netkeepAPIs")
	text, err := json.Marshal(is)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := sdk.Open(t.Context(), sdk.Options{Identity: file, Now: time.Now, Poll: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	sessions := func() int {
		return b.Admin(t).Get(`api-sessions?filter=identity%3D%22` + id + `%22`).Want(http.StatusOK).Total()
	}
	if n := sessions(); n != 1 {
		t.Fatalf("it has %d sessions", n)
	}
	stop(t, a)
	if _, err := c.Hosting(t.Context()); err != nil {
		t.Error(errors.Join(errors.New("it does not go on"), err))
	}
	service := b.Admin(t).Post("services", M{"name": "web", "encryptionRequired": true}).Want(http.StatusCreated).ID()
	b.Admin(t).Post("service-policies", M{
		"name": "web", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"@" + id}, "serviceRoles": []string{"@" + service},
	}).Want(http.StatusCreated)
	servertest.Eventually(t, 30*time.Second, "the service", func() bool { return c.Find("web") != nil })
	servertest.Eventually(t, 30*time.Second, "both controllers in the file", func() bool { return len(texts(identityAt(t, file)["netkeepAPIs"])) == 2 })
	if n := sessions(); n != 1 {
		t.Errorf("it has %d sessions after that", n)
	}
}
