package audit_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/archive"
	"netkeep.internal/internal/ops/audit"
)

// BenchmarkCost says how many times the processor time a change of an identity takes on
// the engine of a controller that it takes without a log. It has all of the log's work in
// it, at the rate that entries are made at: each is written, packed, found by columns,
// archived and forgotten.
//
// Two processes of their own take turns of 512 changes, one with a log and one without.
// What others do on the machine changes what both take; -benchtime counts turns, and of
// many the middle says more than the mean, which is told too.
func BenchmarkCost(b *testing.B) {
	if mode := os.Getenv(costMode); mode != "" {
		takeTurns(b, mode == "with")
		return
	}
	sides := []*side{newSide(b, "without"), newSide(b, "with")}
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
	slices.Sort(of)
	return of[(len(of)-1)*quarters/4]
}

const (
	// costMode is the variable that tells a process which side it is.
	costMode = "NETKEEP_TEST_COST"
	// costWindow is how many entries the log keeps, which all are made before anything
	// is measured.
	costWindow = 4096
)

// side is a process that makes changes.
type side struct {
	ask    io.Writer
	answer *bufio.Reader
}

func newSide(b *testing.B, mode string) *side {
	cmd := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkCost$", "-test.benchtime=1x")
	cmd.Env, cmd.Stderr = append(os.Environ(), costMode+"="+mode), os.Stderr
	ask, err := cmd.StdinPipe()
	must(b, err)
	out, answer, err := os.Pipe()
	must(b, err)
	cmd.ExtraFiles = []*os.File{answer}
	must(b, cmd.Start())
	must(b, answer.Close())
	b.Cleanup(func() { // its directories are its own to remove
		must(b, ask.Close())
		must(b, cmd.Wait())
		must(b, out.Close())
	})
	s := &side{ask, bufio.NewReader(out)}
	s.read(b) // which it says when it is ready
	return s
}

// turn has it make changes, and returns the microseconds of a processor that one took.
func (s *side) turn(b *testing.B) float64 {
	_, err := fmt.Fprintln(s.ask)
	must(b, err)
	return s.read(b)
}

func (s *side) read(b *testing.B) (us float64) {
	_, err := fmt.Fscanln(s.answer, &us)
	must(b, err)
	return us
}

// takeTurns makes changes when it is told to. What the process does between two turns
// because of the one before counts too.
func takeTurns(b *testing.B, logged bool) {
	st, err := etcdstore.Open(b.Context(), etcdstore.Options{Dir: b.TempDir()})
	must(b, err)
	defer st.Close()
	var opt state.Options
	if logged {
		opt.Journal = audit.Journal{}
	}
	s, err := state.Open(b.Context(), st, model.All, opt)
	must(b, err)
	defer s.Close()
	fillIdentities(b, s)
	look := func() {}
	if logged {
		look = lookAfter(b, s)
	}
	made := 0
	turn := func() {
		for range packEvery {
			changeIdentity(b, s, made)
			made++
		}
		look()
	}
	for made < costWindow+2*packEvery {
		turn()
	}
	asked, answer := bufio.NewReader(os.Stdin), os.NewFile(3, "answer")
	for before := cpu(); ; {
		now := cpu()
		_, err := fmt.Fprintln(answer, float64((now-before).Nanoseconds())/1e3/packEvery)
		must(b, err)
		before = now
		if _, err := asked.ReadByte(); err != nil {
			break // there are no more
		}
		turn()
	}
	if head := audit.Head(s.Snapshot()); logged && head.Last-head.First > costWindow+2*packEvery {
		b.Fatalf("entries are kept from %d to %d, which is more than are to be", head.First, head.Last)
	}
}

// lookAfter returns what a controller does for the log every few seconds.
func lookAfter(b *testing.B, s *state.State) func() {
	files := &archive.Archive{Dir: b.TempDir(), Network: "network", Controller: "controller", Bytes: 1 << 30, Now: time.Now, Log: s.Logger()}
	keeper := &audit.Keeper{
		Log: &audit.Log{State: s}, Age: time.Hour, Entries: costWindow, Now: time.Now,
		Archived: func() (int64, string) { n, _ := files.Last(); return n, "controller" },
	}
	asked := &audit.Log{State: s}
	return func() {
		must(b, files.Keep(b.Context(), keeper))
		must(b, keeper.Keep(b.Context()))
		must(b, asked.Catch(b.Context()))
	}
}

// fillIdentities makes ten thousand identities.
func fillIdentities(b *testing.B, s *state.State) {
	must(b, s.Update(b.Context(), ann, func(tx *state.Tx) error { return model.Seed(tx) }))
	for part := range 10 {
		must(b, s.Update(b.Context(), ann, func(tx *state.Tx) error {
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
}

// changeIdentity changes one of them.
func changeIdentity(b *testing.B, s *state.State, i int) {
	must(b, s.Update(b.Context(), ann, func(tx *state.Tx) error {
		return model.Identities.Edit(tx, fmt.Sprint("i", i%10_000), func(rec *model.Identity) error {
			rec.RoleAttributes = []string{fmt.Sprint("branch-", i%89), "all-devices"}
			return nil
		})
	}))
}
