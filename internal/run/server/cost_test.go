//go:build unix

package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/config"
)

const (
	// costMode is the variable that tells a process whether it is a controller with an
	// audit log or one without.
	costMode = "NETKEEP_TEST_COST"
	// costWindow is how many entries the log keeps, which all are made before anything
	// is measured, and costTurn how many changes a turn has.
	costWindow, costTurn = 4096, 512
	costPassword         = "correct horse battery staple"
)

// BenchmarkCost says how many times the processor time a controller takes for a change over
// its API that it takes without an audit log. Two controllers, each a process of its own, take
// turns of changes of identities, one after the other over one connection. Whatever they do
// besides counts as well: entries are packed, found by columns, archived and forgotten
// at the rate that they are made at.
//
// -benchtime counts turns. What else goes on at the machine changes what both take: the
// middle of many says more than the mean, which is told too.
func BenchmarkCost(b *testing.B) {
	if mode := os.Getenv(costMode); mode != "" {
		beChanged(b, mode == "with")
		return
	}
	sides := []*changed{newChanged(b, "without"), newChanged(b, "with")}
	for range costWindow/costTurn + 2 {
		sides[0].turn(b)
		sides[1].turn(b)
	}
	var took [2][]float64
	var times []float64
	for i := 0; b.Loop(); i++ {
		for _, k := range []int{i % 2, (i + 1) % 2} {
			took[k] = append(took[k], sides[k].turn(b))
		}
		times = append(times, took[1][i]/took[0][i])
	}
	b.ReportMetric(sum(took[1])/sum(took[0]), "mean-times")
	b.ReportMetric(quarter(took[0], 2), "without-µs")
	b.ReportMetric(quarter(took[1], 2), "with-µs")
	b.ReportMetric(quarter(times, 1), "low-times")
	b.ReportMetric(quarter(times, 2), "times")
	b.ReportMetric(quarter(times, 3), "high-times")
}

func sum(of []float64) (all float64) {
	for _, one := range of {
		all += one
	}
	return all
}

// quarter is what so many quarters of them are at most.
func quarter(of []float64, quarters int) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[(len(of)-1)*quarters/4]
}

// changed is a controller that is asked for changes.
type changed struct {
	client http.Client
	url    string
	token  string
	made   int
	ask    io.Writer
	answer *bufio.Reader
}

// newChanged starts a controller and logs in.
func newChanged(b *testing.B, mode string) *changed {
	dir := b.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkCost$", "-test.benchtime=1x")
	cmd.Env, cmd.Dir, cmd.Stderr = append(os.Environ(), costMode+"="+mode), dir, os.Stderr
	ask, err := cmd.StdinPipe()
	need(b, err)
	out, answer, err := os.Pipe()
	need(b, err)
	cmd.ExtraFiles = []*os.File{answer}
	need(b, cmd.Start())
	need(b, answer.Close())
	b.Cleanup(func() {
		need(b, ask.Close())
		need(b, cmd.Wait())
		need(b, out.Close())
	})
	c := &changed{ask: ask, answer: bufio.NewReader(out)}
	_, err = fmt.Fscanln(c.answer, &c.url)
	need(b, err)
	root, err := os.ReadFile(filepath.Join(dir, "data", keysDir, "root.crt"))
	need(b, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	c.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	var session struct{ Data struct{ Token string } }
	need(b, json.Unmarshal(c.send(b, http.MethodPost, "authenticate?method=password", map[string]any{"username": "admin", "password": costPassword}), &session))
	c.token = session.Data.Token
	return c
}

func (c *changed) send(b *testing.B, method, path string, body any) []byte {
	text, err := json.Marshal(body)
	need(b, err)
	req, err := http.NewRequestWithContext(b.Context(), method, c.url+"/edge/management/v1/"+path, bytes.NewReader(text))
	need(b, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Zt-Session", c.token)
	resp, err := c.client.Do(req)
	need(b, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	need(b, err)
	if resp.StatusCode != http.StatusOK {
		b.Fatalf("%s %s: status %d: %s", method, path, resp.StatusCode, answer)
	}
	return answer
}

// turn makes changes, and returns the microseconds of a processor that the controller took
// for one.
func (c *changed) turn(b *testing.B) float64 {
	before := c.cpu(b)
	for range costTurn {
		c.made++
		c.send(b, http.MethodPatch, fmt.Sprint("identities/i", c.made%10_000), map[string]any{"roleAttributes": []string{fmt.Sprint("branch-", c.made%89), "all-devices"}})
	}
	return (c.cpu(b) - before) / costTurn
}

// cpu is how many microseconds of a processor the controller took so far.
func (c *changed) cpu(b *testing.B) (us float64) {
	_, err := fmt.Fprintln(c.ask)
	need(b, err)
	_, err = fmt.Fscanln(c.answer, &us)
	need(b, err)
	return us
}

// beChanged is a controller with ten thousand identities, in the directory it is started in.
func beChanged(b *testing.B, logged bool) {
	if !logged {
		journal = nil
	}
	cfg := config.Default()
	cfg.Data, cfg.Listen, cfg.Metrics.Listen = "data", "127.0.0.1:0", "off"
	cfg.Admin.Username, cfg.Admin.Password = "admin", costPassword
	cfg.Audit.Entries = costWindow
	need(b, cfg.Check())
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	s, err := Start(ctx, cfg, slog.New(slog.DiscardHandler))
	need(b, err)
	for part := range 10 {
		need(b, s.state.Update(ctx, state.Program("test"), func(tx *state.Tx) error {
			for i := range 1000 {
				rec := model.Identities.New()
				rec.ID, rec.Name, rec.Type = fmt.Sprint("i", part*1000+i), fmt.Sprint("identity-", part*1000+i, ".branch.example"), "Device"
				rec.RoleAttributes = []string{fmt.Sprint("branch-", i%97), "all-devices"}
				if err := model.Identities.Create(tx, rec); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	asked, answer := bufio.NewReader(os.Stdin), os.NewFile(3, "answer")
	_, err = fmt.Fprintln(answer, "https://"+s.Listening().String())
	need(b, err)
	for {
		if _, err := asked.ReadByte(); err != nil {
			break // nobody has more questions
		}
		var u syscall.Rusage
		need(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		_, err := fmt.Fprintln(answer, float64(u.Utime.Nano()+u.Stime.Nano())/1e3)
		need(b, err)
	}
	if head := audit.Head(s.state.Snapshot()); (head.Last > costWindow) != logged || head.Last-head.First > costWindow+24*costTurn {
		b.Errorf("the log has entries %d to %d", head.First, head.Last)
	}
	need(b, s.Stop(context.Background()))
}

func need(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
