// Package integrity finds out whether what is stored is whole: it reads the
// store afresh, compares it with memory, and judges every record by every rule
// of its kind. A fixing run also repairs what it can. It owns the one run that
// may be under way and its report. It knows kinds only as descriptors and must
// not import model; it writes through state alone.
package integrity

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
)

// MaxFindings is how many findings a report keeps.
const MaxFindings = 1000

// Finding is something that is not as it should be.
type Finding struct {
	Description string
	Fixed       bool
}

// Report is what the last run found, or the one under way has found so far.
type Report struct {
	Started, Ended time.Time // zero for not yet
	Running        bool
	Fixing         bool
	TooMany        bool   // there were more findings than MaxFindings
	Error          string // why the run ended early, if it did
	Findings       []Finding
}

// Scanner runs scans, one at a time. All fields must be set before Run.
type Scanner struct {
	State *state.State
	Store store.Store
	// Seed adds the records that every network has. A fixing run calls it
	// before it follows references, so that nothing is repaired for want of a
	// record that is easily made again.
	Seed func(*state.Tx) error
	// Quarantine is the directory where a fixing run leaves what it takes out
	// of the store.
	Quarantine string
	// Lag is how long memory may take to follow the store, and the sweeper to
	// remove sessions of what is gone. What is mended by then is no finding.
	Lag time.Duration
	Now func() time.Time
	Log *slog.Logger

	mu     sync.Mutex
	report Report
	wake   chan state.Author // takes who asks for a run; made by the first who needs it
}

// Start asks for a run, whose repairs are by whoever asks. It fails with
// CodeRateLimited while one is under way.
func (s *Scanner) Start(by state.Author, fix bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report.Running {
		return fault.New(fault.CodeRateLimited, "an integrity scan is under way; see data-integrity-results")
	}
	s.report = Report{Started: s.Now(), Running: true, Fixing: fix}
	s.signal() <- by // has room: the run before took its own
	return nil
}

// signal returns the channel that wakes Run. The caller holds mu.
func (s *Scanner) signal() chan state.Author {
	if s.wake == nil {
		s.wake = make(chan state.Author, 1)
	}
	return s.wake
}

// Report returns what there is to say now.
func (s *Scanner) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.report
	r.Findings = slices.Clone(r.Findings)
	return r
}

// Run does what Start asks for until ctx ends.
func (s *Scanner) Run(ctx context.Context) {
	s.mu.Lock()
	wake := s.signal()
	s.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case by := <-wake:
			r := &run{Scanner: s, by: by, fix: s.Report().Fixing}
			s.finish(r.all(ctx))
		}
	}
}

// finish ends a run.
func (s *Scanner) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Running, s.report.Ended = false, s.Now()
	if err != nil {
		s.report.Error = err.Error()
		s.Log.Warn("an integrity scan ended early", "error", err)
	}
	fixed := 0
	for _, f := range s.report.Findings {
		if f.Fixed {
			fixed++
		}
	}
	s.Log.Info("integrity scan", "fixing", s.report.Fixing, "findings", len(s.report.Findings), "fixed", fixed,
		"took", s.report.Ended.Sub(s.report.Started).Round(time.Millisecond).String())
}

// found adds a finding to the report.
func (s *Scanner) found(fixed bool, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.report.Findings) == MaxFindings {
		s.report.TooMany = true
		return
	}
	s.report.Findings = append(s.report.Findings, Finding{fmt.Sprintf(format, args...), fixed})
}

// run is one scan.
type run struct {
	*Scanner
	by   state.Author
	fix  bool
	pace pace
}

// all compares first and judges second: rules are judged in memory, which by
// then is what the store holds.
func (r *run) all(ctx context.Context) error {
	r.pace.now = r.Now
	if err := r.compare(ctx); err != nil {
		return fmt.Errorf("compare memory with the store: %w", err)
	}
	if r.fix {
		if err := r.State.Update(ctx, r.by, r.Seed); err != nil {
			return fmt.Errorf("add the built-in records: %w", err)
		}
	}
	if err := r.judge(ctx); err != nil {
		return fmt.Errorf("judge the records: %w", err)
	}
	return nil
}

// pause waits, if ctx lets it.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pace keeps a scan from taking a processor for itself: it rests for twice as
// long as it has worked, which is longer where others work too.
type pace struct {
	now   func() time.Time
	steps int
	began time.Time
}

// stride is how many records are looked at between rests.
const stride = 256

// step is called for every record.
func (p *pace) step(ctx context.Context) error {
	if p.steps++; p.steps%stride != 1 {
		return nil
	}
	now := p.now()
	worked := now.Sub(p.began)
	if p.began.IsZero() || worked <= 0 {
		p.began = now
		return ctx.Err()
	}
	if err := pause(ctx, min(2*worked, maxRest)); err != nil {
		return err
	}
	p.began = p.now()
	return nil
}

// maxRest bounds a rest: a long stride waited for something itself.
const maxRest = 20 * time.Millisecond
