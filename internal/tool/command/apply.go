package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/manifest"
	"netkeep.internal/internal/tool/screen"
)

const (
	// mostChanges is how many changes a controller makes at once.
	mostChanges = 10_000
	// inPart is how many are made at once if there are more, and fewest how many
	// at least if a controller is too slow for that.
	inPart, fewest = 5_000, 100
)

// spare keeps --prune from deleting much by mistake. What is only looked at may be
// looked at.
func (w *wanted) spare(s *session, p *manifest.Plan, binding bool) error {
	most := w.maxDeletes
	if most < 0 && (p.Pruned*10 > p.Owned || p.Pruned == p.Owned) {
		most = 0
	}
	if most < 0 || p.Pruned <= most {
		return nil
	}
	text := fmt.Sprintf("--prune would delete %d of the %d records that these files look after; if that is meant, give --max-deletes %d", p.Pruned, p.Owned, p.Pruned)
	if binding {
		return errors.New(text + "; nothing was done")
	}
	s.Notef("%s to apply.", text)
	return nil
}

// counted is what can be said of many changes without asking a controller.
func counted(changes []change) *plan {
	p := new(plan)
	for _, c := range changes {
		switch c.Op {
		case opCreate:
			p.Counts.Created++
		case opDelete:
			p.Counts.Deleted++
		default:
			p.Counts.Changed++
		}
	}
	return p
}

// tellParts says in short what many changes are.
func (s *session) tellParts(p *plan, changes []change) {
	const some = 20
	word := map[string]string{opCreate: "created", opDelete: "deleted"}
	for _, c := range changes[:some] {
		s.Printf("%s %s %s\n", s.mark(word[c.Op]), strings.ReplaceAll(c.Kind, "-", " "), screen.Plain(c.label()))
	}
	s.Printf("… and %d more\n\n%d to create, %d to change, %d to delete, in parts of %d.\n", len(changes)-some, p.Counts.Created, p.Counts.Changed, p.Counts.Deleted, inPart)
	s.Printf("Who gains or loses what is not told of more than %d changes.\n", mostChanges)
}

// apply makes changes if the outcome is the one that was planned, in parts if
// there are many, and says what was done.
func (s *session) apply(ctx context.Context, changes []change, digest, form string) error {
	done, err := new(plan), error(nil)
	if len(changes) > mostChanges {
		done, err = s.applyParts(ctx, changes)
	} else {
		done, err = s.applyWhole(ctx, changes, digest)
	}
	switch {
	case err != nil:
		return err
	case form != formText:
		return s.value(form, done)
	}
	s.Printf("%d created, %d changed, %d deleted.\n", done.Counts.Created, done.Counts.Changed, done.Counts.Deleted)
	return nil
}

// applyParts makes many changes, some at a time. Those that were made are not
// different any more, so that the same files lead on from there.
func (s *session) applyParts(ctx context.Context, changes []change) (*plan, error) {
	all, size := &plan{Applied: true}, inPart
	for made := 0; made < len(changes); {
		part := changes[made:min(made+size, len(changes))]
		done, err := s.applyWhole(ctx, part, "")
		if slow, ok := errors.AsType[*remote.Error](err); ok && slow.Code == codeTimeout && size > fewest {
			size = max(fewest, size/2)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w; %d of %d changes were made, and no other: apply the same files again to go on from there", err, made, len(changes))
		}
		made += len(part)
		all.Counts.Created += done.Counts.Created
		all.Counts.Changed += done.Counts.Changed
		all.Counts.Deleted += done.Counts.Deleted
		s.Notef("%d of %d changes were made.", made, len(changes))
	}
	return all, nil
}

// codeTimeout is what a controller calls a refusal for want of time: nothing was
// done.
const codeTimeout = "TIMEOUT"

// applyWhole makes changes, all of them or none, and finds out which if that is
// not said.
func (s *session) applyWhole(ctx context.Context, changes []change, digest string) (*plan, error) {
	id := rand.Text()
	done, err := s.changeAs(ctx, id, changes, false, digest)
	if err == nil {
		return done, nil
	}
	refused, said := errors.AsType[*remote.Error](err)
	if said && (refused.Status < http.StatusInternalServerError || refused.Code == codeTimeout) {
		return nil, s.nearby(ctx, err, changes)
	}
	if !said && !errors.Is(err, remote.ErrOpen) {
		return nil, err
	}
	return s.settle(ctx, id, changes, err)
}

const (
	// looks is how often one asks what became of changes whose answer was lost,
	// and pause how long one waits in between.
	looks = 15
	pause = time.Second
)

// settle asks what became of changes whose answer was lost. If they were not made
// they cannot be made any more, so that what it says stays true.
func (s *session) settle(ctx context.Context, id string, changes []change, lost error) (*plan, error) {
	s.Notef("There was no answer that says whether the changes were made; asking for it.")
	var settled struct {
		Made bool `json:"made"`
	}
	for range looks {
		err := s.Call(ctx, remote.Request{Method: http.MethodPost, Path: "/changes/" + id + "/settle", Repeatable: true}, &settled)
		refused, said := errors.AsType[*remote.Error](err)
		switch {
		case err == nil && settled.Made:
			s.Notef("All %d changes were made.", len(changes))
			done := counted(changes)
			done.Applied = true
			return done, nil
		case err == nil:
			return nil, fmt.Errorf("none of the %d changes was made; do the same again (%w)", len(changes), lost)
		case said && refused.Status < http.StatusInternalServerError:
			return nil, fmt.Errorf("%w; %w", lost, err)
		case !said && !slices.ContainsFunc([]error{remote.ErrUnreachable, remote.ErrOpen}, func(e error) bool { return errors.Is(err, e) }):
			return nil, lost
		}
		select { // it may be on its way back
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, lost
		}
	}
	return nil, lost
}
