package history_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/history"
)

// edits makes services and changes each of them once, some in a write, and returns the
// number of the last entry before the changes.
func (w *world) edits(t tester, services, inWrite int) (before int64) {
	t.Helper()
	for n := 0; n < services; n += inWrite {
		w.write(t, func(tx *state.Tx) error {
			for i := n; i < n+inWrite; i++ {
				name := fmt.Sprint("s", i)
				if err := model.Services.Create(tx, &model.Service{Meta: kind.Meta{ID: name}, Name: name, TerminatorStrategy: "random"}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	before = w.last()
	for n := 0; n < services; n += inWrite {
		w.write(t, func(tx *state.Tx) error {
			for i := n; i < n+inWrite; i++ {
				if err := model.Services.Edit(tx, fmt.Sprint("s", i), func(s *model.Service) error { s.MaxIdleTimeMillis = 1; return nil }); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return before
}

// TestTooFar asks for a moment since which too much has changed: it is refused with how
// far it goes, and there it goes.
func TestTooFar(t *testing.T) {
	if history.MostDiffering != 200_000 {
		t.Errorf("docs/audit.md says 200,000 records, and there may be %d", history.MostDiffering)
	}
	w := open(t)
	defer w.Close()
	before := w.edits(t, 6000, 500)
	w.SetMost(5500)
	_, err := w.At(t.Context(), "at", strconv.FormatInt(before, 10))
	if !fault.Is(err, fault.CodeInvalid) || !strings.Contains(err.Error(), "more than 5500 records differ since then") {
		t.Fatalf("it is answered with %v", err)
	}
	said := regexp.MustCompile(`it goes back to audit entry (\d+)`).FindStringSubmatch(err.Error())
	if said == nil {
		t.Fatalf("it does not say how far it goes: %v", err)
	}
	far, err := strconv.ParseInt(said[1], 10, 64)
	must(t, err)
	if far <= before || far >= w.last() {
		t.Errorf("it goes back to %d, between %d and %d", far, before, w.last())
	}
	w.at(t, far)
	w.SetMost(6000)
	if got := w.at(t, before); got.Len(model.Services.Def) != 6000 {
		t.Errorf("then there were %d services", got.Len(model.Services.Def))
	}
}

// counted is a store that tells when entries were read some more times.
type counted struct {
	store.Store

	mu   sync.Mutex
	left int
	then func()
}

func (c *counted) Range(ctx context.Context, from, to string, most int, newest bool) ([]store.Record, bool, error) {
	c.mu.Lock()
	if c.left--; c.left == 0 && c.then != nil {
		c.then()
	}
	c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	return c.Store.Range(ctx, from, to, most, newest)
}

// TestInParts asks for a moment that takes longer than a request may: it is refused
// with a word, and who asks again goes on from where it came to.
func TestInParts(t *testing.T) {
	st := &counted{Store: storetest.NewMemory()}
	s, err := state.Open(t.Context(), st, model.All, state.Options{Journal: audit.Journal{}})
	must(t, err)
	w := &world{s, history.New(&audit.Log{State: s}, time.Now), nil}
	defer w.Close()
	before := w.edits(t, 7000, 500)
	moment := strconv.FormatInt(before, 10)
	reads := func(do func() error) int {
		st.left, st.then = 0, nil
		must(t, do())
		return -st.left
	}
	find := reads(func() error { _, err := w.Number(t.Context(), "at", moment); return err })
	all := reads(func() error { _, err := history.New(w.Log, time.Now).At(t.Context(), "at", moment); return err })
	tries := 0
	for {
		tries++
		ctx, cancel := context.WithCancel(t.Context())
		st.mu.Lock()
		st.left, st.then = find+(all-find)*6/7, cancel
		st.mu.Unlock()
		past, err := w.At(ctx, "at", moment)
		cancel()
		if err == nil {
			if got := past.Len(model.Services.Def); got != 7000 {
				t.Errorf("then there were %d services", got)
			}
			break
		}
		if !fault.Is(err, fault.CodeTimeout) || !strings.Contains(err.Error(), "ask again") || tries > 10 {
			t.Fatalf("the %d. time it is answered with %v", tries, err)
		}
	}
	if tries < 2 {
		t.Error("it was made at once: the test tests nothing")
	}
}

// TestTurn asks while others have snapshots made for longer than the request may take.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.Close()
		numbers := w.services(t, 3)
		w.Busy()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := w.At(ctx, "at", strconv.FormatInt(numbers[0], 10)); !fault.Is(err, fault.CodeTimeout) || !strings.Contains(err.Error(), "ask again") {
			t.Errorf("it is answered with %v", err)
		}
	})
}

// TestForgotten leaves a snapshot alone for a while: it is kept for who asks for the
// next page, and not for longer.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t)
		defer w.Close()
		numbers := w.services(t, 3)
		w.at(t, numbers[0])
		<-time.After(history.KeptTime - time.Second)
		w.at(t, numbers[0])
		<-time.After(history.KeptTime - time.Second)
		synctest.Wait()
		if w.Kept() != 1 {
			t.Errorf("%d snapshots are kept that somebody asked for", w.Kept())
		}
		<-time.After(2 * history.KeptTime)
		synctest.Wait()
		if w.Kept() != 0 {
			t.Errorf("%d snapshots are kept that nobody asks for", w.Kept())
		}
	})
}
