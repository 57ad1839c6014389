package program_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/test/machine"
)

var soak = flag.Duration("soak", 20*time.Second, "how long a network is used without a break; what it keeps is judged more sharply from 30m on")

const (
	// soakRound is how often everything is done once: as often at the end as at the
	// beginning, however busy the machine is.
	soakRound = time.Second
	// soakEvery is how far apart what the controller has is looked at. History is forgotten
	// as often, up to where it was the time before: so twice that is when the store has
	// become as large as it gets.
	soakEvery = 10 * time.Minute
	// storeStep is by how much the engine's file grows at a time: one step more may be the
	// one that was nearly needed before.
	storeStep = 16 << 20
	// soakTalkers is how many connections there are at once.
	soakTalkers = 3
)

// TestSoak uses a network as people do, without a break: connections with bytes, logins,
// changes, a router that is restarted beside the one inside the controller. When all is
// quiet the controller has as much memory, as many descriptors and goroutines and as large
// a store, to a step in which that grows, as after it was used for the first time.
func TestSoak(t *testing.T) {
	t.Parallel() // it waits more than it works
	s := newSoaked(t)
	warm, every := 2*soakEvery, soakEvery
	if *soak < 3*soakEvery {
		warm, every = *soak/2, *soak/2
	}
	s.use(t, warm)
	before := s.rest(t, func(holding) bool { return true })
	t.Logf("after %d rounds it has %v", s.rounds, before)
	most := before.and(5)
	most.store += storeStep
	if warm < 2*soakEvery { // history is not forgotten yet: some kilobytes a change
		most = before.and(25)
		most.heap += int64(s.rounds) * 32 << 10
	}
	for used := warm; used+every <= *soak && !t.Failed(); used += every {
		s.use(t, every)
		now := s.rest(t, most.holds)
		t.Logf("after %d rounds it has %v", s.rounds, now)
		if !most.holds(now) {
			t.Errorf("it had %v, and has %v a minute after everything has ended", before, now)
		}
	}
	t.Logf("%d connections came back whole, %d were cut; %d changes, %d logins, %d restarts", s.whole, s.cut, s.changes, s.logins, s.restarts)
	if min(s.whole, s.changes, s.logins, s.restarts) == 0 {
		t.Error("it was not used")
	}
	if log := s.admin.verified(t); log["intact"] != true {
		t.Errorf("the audit log is %v", log)
	}
	s.admin.scan(t)
	s.p.stop()
}

// soaked is a network that is used.
type soaked struct {
	p, router   *process
	admin       *client
	home, local string
	profiles    string // where the controller tells of itself
	db          string // its store

	rounds, whole, cut, changes, logins, restarts int
}

// newSoaked makes a controller with a router inside, a router beside it, and a client that
// hosts a service and dials it.
func newSoaked(t *testing.T) *soaked {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	s := &soaked{home: filepath.Join(dir, "router"), local: machine.Port(t), db: filepath.Join(data, "store", "member", "snap", "db")}
	metrics := "127.0.0.1:" + machine.Port(t)
	s.profiles = "http://" + metrics + "/debug/pprof/"
	s.p = controller(t, data, "--router", "127.0.0.1:0", "--metrics-listen", metrics, "--metrics-pprof", "--audit-entries", "1000")
	s.admin = s.p.client(data)
	s.admin.addEcho(t)
	for _, typ := range []string{"Dial", "Bind"} {
		s.admin.must(t, 201, "POST", "service-policies", M{"name": typ, "type": typ, "semantic": "AnyOf", "identityRoles": []string{"#soak"}, "serviceRoles": []string{"#all"}})
	}
	id := s.admin.must(t, 201, "POST", "edge-routers", M{"name": "beside"}).id()
	token := s.admin.must(t, 200, "GET", "edge-routers/"+id, nil).body["data"].(M)["enrollmentJwt"].(string)
	enrolled := launch(t, settings{args: []string{"router", "enroll", token, "--data", s.home, "--listen", "127.0.0.1:" + machine.Port(t), "--metrics-listen", "off"}})
	if code := enrolled.wait(); code != 0 {
		t.Fatalf("enrolling ended with %d: %s", code, enrolled.stderr.String())
	}
	s.router = launch(t, settings{args: []string{"router", "run", "--data", s.home}})
	s.admin.online(t, s.p, 2)
	device, file := s.admin.addTunneler(t, dir, "tunneler")
	s.admin.must(t, 200, "PATCH", "identities/"+device, M{"roleAttributes": []string{"soak"}})
	launch(t, settings{args: []string{"tunnel", "run", "--identity", file, "echo:" + s.local}})
	_ = dialEcho(t, s.local).Close()
	return s
}

// use does everything once a round for so long.
func (s *soaked) use(t *testing.T, long time.Duration) {
	t.Helper()
	tick := time.NewTicker(soakRound)
	defer tick.Stop()
	for end := time.Now().Add(long); time.Now().Before(end) && !t.Failed(); <-tick.C {
		s.rounds++
		ends := make(chan error)
		for i := range soakTalkers {
			go func() { ends <- s.talk(uint64(s.rounds*soakTalkers + i)) }()
		}
		s.change(t)
		s.login(t)
		if s.rounds%10 == 1 {
			s.restart(t)
		}
		for range soakTalkers {
			switch err := <-ends; {
			case err == nil:
				s.whole++
			case errors.Is(err, errOther):
				t.Error(err)
			default: // by a router that was restarted
				s.cut++
			}
		}
	}
}

var errOther = errors.New("other bytes come back than were sent")

// talk sends a megabyte over a connection and hears it again.
func (s *soaked) talk(seed uint64) error {
	conn, err := net.Dial("tcp", "127.0.0.1:"+s.local)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(waitTime))
	said := make([]byte, 1<<20)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = r.Read(said)
	wrote := make(chan error, 1)
	go func() {
		_, err := conn.Write(said)
		wrote <- err
	}()
	heard := make([]byte, len(said))
	n, err := io.ReadFull(conn, heard)
	if !bytes.Equal(said[:n], heard[:n]) {
		return errOther
	}
	_ = conn.Close()
	return errors.Join(err, <-wrote)
}

// change makes, changes and deletes one of what writers write.
func (s *soaked) change(t *testing.T) {
	for path, body := range map[string]M{
		"configs":    {"configTypeId": "host.v2", "data": M{"terminators": []any{M{"protocol": "tcp", "address": "host", "port": 1.0}}}},
		"identities": {"type": "Device", "isAdmin": false, "roleAttributes": []string{"some"}, "enrollment": M{"ott": true}},
		"services":   {"encryptionRequired": true, "roleAttributes": []string{"some"}},
	} {
		body["name"] = fmt.Sprint("soak ", s.rounds)
		id := s.admin.must(t, 201, http.MethodPost, path, body).id()
		s.admin.must(t, 200, http.MethodPatch, path+"/"+id, M{"tags": M{"round": fmt.Sprint(s.rounds)}})
		s.admin.must(t, 200, http.MethodDelete, path+"/"+id, nil)
		s.changes += 3
	}
}

// login opens an API session and ends it.
func (s *soaked) login(t *testing.T) {
	other := *s.admin
	if err := other.login("admin", password); err != nil {
		t.Error(err)
		return
	}
	other.must(t, 200, http.MethodGet, "current-identity", nil)
	other.must(t, 200, http.MethodDelete, "current-api-session", nil)
	s.logins++
}

// restart ends the router beside the controller, in both ways by turns, and starts it again.
func (s *soaked) restart(t *testing.T) {
	end := os.Signal(syscall.SIGTERM)
	if s.restarts%2 == 1 {
		end = os.Kill
	}
	s.router.signal(end)
	s.router.wait()
	s.router = launch(t, settings{args: []string{"router", "run", "--data", s.home}})
	s.restarts++
}

// holding is what a controller has.
type holding struct {
	heap, store             int64 // bytes
	descriptors, goroutines int64
}

func (h holding) String() string {
	return fmt.Sprintf("%.2f MB in use of its heap, a store of %.2f MB, %d descriptors and %d goroutines", float64(h.heap)/1e6, float64(h.store)/1e6, h.descriptors, h.goroutines)
}

// and is so many parts in a hundred more.
func (h holding) and(percent int64) holding {
	more := func(n int64) int64 { return n + n*percent/100 }
	return holding{more(h.heap), more(h.store), more(h.descriptors), more(h.goroutines)}
}

// holds reports whether it is no less than another.
func (h holding) holds(other holding) bool {
	return other.heap <= h.heap && other.store <= h.store && other.descriptors <= h.descriptors && other.goroutines <= h.goroutines
}

// rest waits until all has ended that anybody has begun, and some more if that is not
// enough, and returns what the controller has.
func (s *soaked) rest(t *testing.T, enough func(holding) bool) holding {
	t.Helper()
	s.admin.online(t, s.p, 2)
	s.admin.circuits(t, s.p, 0)
	least := s.look(t)
	for end := time.Now().Add(waitTime); !enough(least) && time.Now().Before(end); <-time.After(time.Second) {
		least = s.look(t)
	}
	return least
}

// look asks the controller, which collects its garbage for it.
func (s *soaked) look(t *testing.T) (h holding) {
	t.Helper()
	h.heap = s.number(t, "heap?gc=1&debug=1", "# HeapAlloc = ")
	h.goroutines = s.number(t, "goroutine?debug=1", "goroutine profile: total ")
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.db)
	if err != nil {
		t.Fatal(err)
	}
	h.descriptors, h.store = int64(len(open)), info.Size()
	return h
}

// number is what a profile says behind some words.
func (s *soaked) number(t *testing.T, profile, words string) (n int64) {
	t.Helper()
	resp, err := http.Get(s.profiles + profile)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte(words))
	if _, err := fmt.Sscan(string(rest), &n); err != nil {
		t.Fatalf("%s does not say %q: %v", profile, words, err)
	}
	return n
}
