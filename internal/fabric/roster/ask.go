package roster

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/store"
)

// askPrefix is what the names of claims begin with that are questions to all other
// controllers. Behind it is a name of the question, and of an answer the controller
// that gives it.
const askPrefix = "ask/"

// askTime is how long others have to answer.
const askTime = 5 * time.Second

// ErrUnanswered says that somebody who is there has not answered in time.
var ErrUnanswered = errors.New("another controller has not answered in time")

// question is what is asked, and answer what is said to it.
type (
	question struct {
		By   string `json:"by"`
		What string `json:"what"`
	}
	answer struct {
		By  string `json:"by"`
		Yes bool   `json:"yes"`
	}
)

// asks is the questions of this controller, and those that it has answered.
type asks struct {
	mu       sync.Mutex
	open     map[string]*open
	answered map[string]bool
}

// open is a question that is not answered yet.
type open struct {
	said  map[string]bool // by who has answered
	heard chan struct{}   // has an element when there is another answer
}

// Ask asks all other controllers that are there, and reports whether one says yes.
func (r *Roster) Ask(ctx context.Context, what string) (bool, error) {
	waiting := r.others()
	if len(waiting) == 0 {
		return false, nil
	}
	text, err := json.Marshal(question{r.id, what})
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	name := rand.Text()
	heard := r.asks.begin(name)
	defer r.asks.end(name)
	lease := r.Lease()
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseLife)
		defer cancel()
		_ = lease.Note(ctx, store.Claim{Name: askPrefix + name}) // it goes with the lease if not
	}()
	if err := lease.Note(ctx, store.Claim{Name: askPrefix + name, Value: text}); err != nil {
		return false, err
	}
	for {
		changes := r.changes()
		// Who goes meanwhile cannot answer.
		waiting = slices.DeleteFunc(waiting, func(id string) bool { return !r.Online(id) })
		if yes, all := r.asks.said(name, waiting); yes || all {
			return yes, nil
		}
		select {
		case <-heard:
		case <-changes:
		case <-ctx.Done():
			return false, ErrUnanswered
		}
	}
}

// others are the other controllers that are there.
func (r *Roster) others() (ids []string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for id, h := range r.answers {
		if id != r.id && h.By == id {
			ids = append(ids, id)
		}
	}
	return ids
}

func (a *asks) begin(name string) (heard <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open == nil {
		a.open = map[string]*open{}
	}
	q := &open{said: map[string]bool{}, heard: make(chan struct{}, 1)}
	a.open[name] = q
	return q.heard
}

func (a *asks) end(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, name)
}

// said reports whether somebody has said yes to a question, and whether all of
// some have answered.
func (a *asks) said(name string, by []string) (yes, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	said := a.open[name].said
	for _, yes := range said {
		if yes {
			return true, false
		}
	}
	return false, !slices.ContainsFunc(by, func(id string) bool { _, has := said[id]; return !has })
}

// hear takes note of an answer, if somebody waits for it.
func (a *asks) hear(name string, said answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	q := a.open[name]
	if q == nil {
		return
	}
	q.said[said.By] = said.Yes
	select {
	case q.heard <- struct{}{}:
	default: // it will look
	}
}

// first reports whether a question has not been answered yet.
func (a *asks) first(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered == nil {
		a.answered = map[string]bool{}
	}
	was := a.answered[name]
	a.answered[name] = true
	return !was
}

// has reports whether a question that was answered is still there.
func (a *asks) has(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered[name]
}

// over forgets a question; it reports whether it was answered.
func (a *asks) over(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.answered[name]
	delete(a.answered, name)
	return was
}

// hear takes note of questions and answers.
func (r *Roster) hear(ctx context.Context, parts *sync.WaitGroup, claims []store.Claim) {
	for _, c := range claims {
		name, by, answers := strings.Cut(strings.TrimPrefix(c.Name, askPrefix), "/")
		if answers {
			var said answer
			if c.Value != nil && json.Unmarshal(c.Value, &said) == nil && said.By == by {
				r.asks.hear(name, said)
			}
			continue
		}
		own := store.Claim{Name: askPrefix + name + "/" + r.id}
		var asked question
		switch {
		case c.Value == nil:
			if r.asks.over(name) {
				parts.Go(func() { r.note(ctx, own) })
			}
		case json.Unmarshal(c.Value, &asked) == nil && asked.By != r.id && r.asks.first(name):
			parts.Go(func() {
				text, err := json.Marshal(answer{r.id, r.opt.Asked(asked.What)})
				if own.Value = text; err == nil {
					r.note(ctx, own)
				}
				if !r.asks.has(name) { // nobody waits any more
					r.note(ctx, store.Claim{Name: own.Name})
				}
			})
		}
	}
}

// note writes an answer, or takes it back. If that fails nobody hears it, and it
// goes with the lease.
func (r *Roster) note(ctx context.Context, c store.Claim) {
	ctx, cancel := context.WithTimeout(ctx, leaseLife)
	defer cancel()
	if err := r.Lease().Note(ctx, c); err != nil {
		r.opt.Log.Debug("an answer to another controller could not be written", "error", err)
	}
}
