package api_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/test/servertest"
)

// damaged starts a controller whose log may hold errors: it is told to read
// what cannot be read.
func damaged(t *testing.T) *servertest.Server {
	t.Helper()
	s, err := servertest.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// scan has the controller scan its data and returns what it found.
func scan(t *testing.T, c *servertest.Client, how string) *servertest.Answer {
	t.Helper()
	c.Post("database/"+how+"-data-integrity", nil).Want(202)
	var a *servertest.Answer
	servertest.Eventually(t, time.Minute, "the end of the scan", func() bool {
		a = c.Get("database/data-integrity-results").Want(200)
		return a.Data()["inProgress"] == false
	})
	if a.Data()["error"] != nil || a.Data()["fixingErrors"] != (how == "fix") || a.Data()["tooManyErrors"] != false ||
		a.Data()["startTime"] == nil || a.Data()["endTime"] == nil {
		t.Errorf("the scan ended with %s", a.Raw)
	}
	if a.Total() != len(a.Data()["results"].([]any)) {
		t.Errorf("the total is %d of %s", a.Total(), a.Raw)
	}
	return a
}

// finds reports whether a scan found something, and whether it is fixed.
func finds(a *servertest.Answer, text string) (found, fixed bool) {
	for _, r := range a.Data()["results"].([]any) {
		if strings.Contains(r.(M)["description"].(string), text) {
			return true, r.(M)["fixed"].(bool)
		}
	}
	return false, false
}

// TestIntegrity damages the store of a running controller. A check finds all
// of it, a fixing run repairs what can be repaired.
func TestIntegrity(t *testing.T) {
	s := damaged(t)
	c := s.Admin(t)
	if a := c.Get("database/data-integrity-results").Want(200); a.Data()["startTime"] != nil || a.Data()["inProgress"] != false || a.Total() != 0 {
		t.Errorf("before any scan there is %s", a.Raw)
	}
	if a := scan(t, c, "check"); a.Total() != 0 {
		t.Fatalf("a new network has %s", a.Raw)
	}
	add := func(path string, body M) string { return c.Post(path, body).Want(201).ID() }
	identity := M{"type": "Device", "isAdmin": false}
	named := func(name string) M { return M{"name": name, "type": identity["type"], "isAdmin": false} }
	first, second, third := add("identities", named("first")), add("identities", named("second")), add("identities", named("third"))
	service := add("services", M{"name": "service", "encryptionRequired": true})
	policy := add("service-policies", M{"name": "policy", "type": "Dial", "semantic": "AnyOf", "identityRoles": []any{"@" + first}, "serviceRoles": []any{"@" + service}})

	vandal := store.Head{Writes: []store.Write{{Author: state.Program("vandal"), Ops: 1}}}
	damage := func(key string, change func(value string) string) {
		t.Helper()
		rec, _, err := s.Store().Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Store().Put(t.Context(), vandal, []store.Op{{Key: key, Value: []byte(change(string(rec.Value))), Prev: rec.Rev}}); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(old, new string) func(string) string {
		return func(value string) string {
			t.Helper()
			if !strings.Contains(value, old) {
				t.Fatalf("there is no %s in %s", old, value)
			}
			return strings.ReplaceAll(value, old, new)
		}
	}
	damage("identity/"+second, replace(`"name":"second"`, `"name":"first"`))
	damage("identity/"+third, func(string) string { return "\x01\x02 foreign" })
	damage("service/"+service, replace(`"name":"service"`, `"name":"service","configs":["gone"]`))
	damage("service-policy/"+policy, replace("@"+first, "@gone"))
	damage("comet/halley", func(string) string { return "{}" })

	expected := []string{"identity/" + second, "identity/" + third, "service/" + service, "service-policy/" + policy, "comet/halley"}
	a := scan(t, c, "check")
	for _, key := range expected {
		if found, fixed := finds(a, key); !found || fixed {
			t.Errorf("the check does not find %s: %s", key, a.Raw)
		}
	}
	if a.Total() != len(expected) {
		t.Errorf("the check found %s", a.Raw)
	}
	a = scan(t, c, "fix")
	for _, key := range expected {
		if found, fixed := finds(a, key); !found || fixed != (key != "comet/halley") {
			t.Errorf("the fixing run does not fix %s: %s", key, a.Raw)
		}
	}
	if a := scan(t, c, "check"); a.Total() != 1 {
		t.Errorf("afterwards a check finds %s", a.Raw)
	}
	if got := c.Get("identities/" + second).Want(200).Data()["name"]; got != "first-2" {
		t.Errorf("the younger of two identities is called %v", got)
	}
	c.Get("identities/"+third).Fails(404, "NOT_FOUND", "")
	if got := c.Get("services/" + service).Want(200).At("data.configs"); len(got.([]any)) != 0 {
		t.Errorf("the service has %v", got)
	}
	if got := c.Get("service-policies/" + policy).Want(200).At("data.identityRoles"); len(got.([]any)) != 0 {
		t.Errorf("the policy names %v", got)
	}
	files, err := os.ReadDir(filepath.Join(s.Config.Data, "quarantine"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the quarantine has %v: %v", files, err)
	}
	if kept, err := os.ReadFile(filepath.Join(s.Config.Data, "quarantine", files[0].Name())); err != nil || string(kept) != "\x01\x02 foreign" {
		t.Errorf("%s holds %q: %v", files[0].Name(), kept, err)
	}
}

// TestIntegrityOfSharedData scans what all the tests have made: none of it may
// be reported, whatever they are doing.
func TestIntegrityOfSharedData(t *testing.T) {
	if a := scan(t, shared.Admin(t), "check"); a.Total() != 0 {
		t.Errorf("sound data is reported: %s", a.Raw)
	}
}

func TestSnapshot(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	name := c.Post("database/snapshot", nil).Want(200).At("data.file")
	files, err := os.ReadDir(filepath.Join(s.Config.Data, "snapshots"))
	if err != nil || len(files) != 1 || !regexp.MustCompile(`^\d{8}T\d{6}Z-r\d+-n[0-9a-f]{16}\.db$`).MatchString(files[0].Name()) {
		t.Errorf("there is %v: %v", files, err)
	} else if name != files[0].Name() {
		t.Errorf("the answer names %v, the file is %s", name, files[0].Name())
	}
	c.Post("database/snapshot", nil).Fails(429, "RATE_LIMITED", "")
}

// TestSnapshotFiles lists snapshots and reads them back, whole and damaged.
func TestSnapshotFiles(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	if all := c.Get("database/snapshots").Want(200).List(); len(all) > 0 {
		t.Errorf("before the first there is %v", all)
	}
	name := c.Post("database/snapshot", nil).Want(200).At("data.file").(string)
	path := filepath.Join(s.Config.Data, "snapshots", name)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	list := c.Get("database/snapshots").Want(200).List()
	if len(list) != 1 || list[0]["name"] != name || list[0]["size"] != float64(info.Size()) || list[0]["scheduled"] != false ||
		list[0]["revision"].(float64) < 1 || time.Since(moment(t, list[0]["time"])) > time.Minute {
		t.Errorf("the list is %v", list)
	}
	verified := c.Post("database/snapshots/"+name+"/verify", nil).Want(200).Data()
	if verified["intact"] != true || verified["problem"] != nil || verified["revision"] != list[0]["revision"] {
		t.Errorf("a whole one is %v", verified)
	}
	for _, none := range []string{"x", "20260101T000000Z-r1.db", "..%2f..%2fpki%2froot.key", "%2e%2e", ".unfinished-1"} {
		c.Post("database/snapshots/"+none+"/verify", nil).Fails(404, "NOT_FOUND", "")
	}
	last := c.Get("status").Want(200).At("data.lastSnapshot.name")
	if last != name {
		t.Errorf("the status speaks of %v", last)
	}
}

// TestSnapshotDamaged spoils a snapshot.
func TestSnapshotDamaged(t *testing.T) {
	s := damaged(t)
	c := s.Admin(t)
	name := c.Post("database/snapshot", nil).Want(200).At("data.file").(string)
	path := filepath.Join(s.Config.Data, "snapshots", name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if v := c.Post("database/snapshots/"+name+"/verify", nil).Want(200).Data(); v["intact"] != false || v["problem"] == nil {
		t.Errorf("a damaged one is %v", v)
	}
}

// TestSnapshotSchedule has snapshots taken by themselves, into a directory
// elsewhere.
func TestSnapshotSchedule(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "elsewhere")
	s := servertest.Start(t, func(c *config.Config) { c.Snapshots.Every, c.Snapshots.Dir = time.Hour, dir })
	c := s.Admin(t)
	servertest.Eventually(t, waitTime, "a snapshot", func() bool {
		all := c.Get("database/snapshots").Want(200).List()
		return len(all) == 1 && all[0]["scheduled"] == true
	})
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 || c.Get("status").At("data.lastSnapshot.name") != files[0].Name() {
		t.Errorf("there is %v: %v", files, err)
	}
	name := c.Get("status").At("data.lastSnapshot.name").(string)
	c.Post("database/snapshots/"+name+"/verify", nil).Want(200)
	servertest.Eventually(t, waitTime, "an entry of it", func() bool {
		entries := c.Get("audit-entries?filter=" + url.QueryEscape(`event = "snapshot-made"`)).Want(200).List()
		return len(entries) == 1 && entries[0]["targetName"] == name && entries[0]["actorKind"] == "program" && entries[0]["actorName"] == "snapshots"
	})
}

// TestStatus looks at a controller on one screen.
func TestStatus(t *testing.T) {
	s := servertest.Start(t)
	c := s.Admin(t)
	s.AddRouter(t).Connect(t)
	c.Post("routers", M{"name": "core"}).Want(201)
	got := c.Get("status").Want(200).Data()
	for path, want := range map[string]any{
		"health": "ok", "lastSnapshot": nil, "counts.identities": 1.0, "counts.enrollments": 1.0,
		"routers.total": 2.0, "routers.online": 1.0, "sessions.apiSessions": 1.0,
	} {
		if v := c.Get("status").At("data." + path); v != want {
			t.Errorf("%s is %v, want %v", path, v, want)
		}
	}
	certificates := got["certificates"].([]any)
	if len(certificates) != 3 || certificates[0].(M)["daysLeft"].(float64) < 1 || time.Until(moment(t, certificates[0].(M)["notAfter"])) < time.Hour {
		t.Errorf("the certificates are %v", certificates)
	}
	if store := got["store"].(M); store["sizeBytes"].(float64) < 1 || store["diskFreeBytes"].(float64) < 1 || store["revision"].(float64) < 1 {
		t.Errorf("the store is %v", store)
	}
	if got["version"] != build.Version || got["uptimeSeconds"].(float64) < 0 || time.Since(moment(t, got["startedAt"])) > time.Minute || len(got["checks"].([]any)) != 6 {
		t.Errorf("it is %v", got)
	}
	user := s.AddUser(t, false)
	s.Login(t, user.Username, user.Password).Get("status").Fails(401, "UNAUTHORIZED", "")
}

// moment reads a time of an answer.
func moment(t *testing.T, v any) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, v.(string))
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestSnapshotElsewhere keeps snapshots on another disk: the answer says where one
// is.
func TestSnapshotElsewhere(t *testing.T) {
	dir := t.TempDir()
	s := servertest.Start(t, func(c *config.Config) { c.Snapshots.Dir = dir })
	made := s.Admin(t).Post("database/snapshot", nil).Want(200).Data()
	at, _ := made["path"].(string)
	if filepath.Dir(at) != dir || filepath.Base(at) != made["file"] {
		t.Errorf("it is said to be %v at %q, want it in %s", made["file"], at, dir)
	}
	if _, err := os.Stat(at); err != nil {
		t.Error(err)
	}
}
