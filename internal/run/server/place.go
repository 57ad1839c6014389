package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/keyring"
	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
)

const (
	// goneWait is how long somebody may seem to be there who was killed a moment
	// ago, and goneAgain how often it is looked.
	goneWait  = 6 * time.Second
	goneAgain = 250 * time.Millisecond
	// removedMost is how many controllers it is remembered of that they were removed.
	removedMost = 200
)

// ownID is the id of this controller. The first of a network has one that follows
// from its root CA, or the one that the network had for it elsewhere; one that keeps the store and joined nobody is the first, also
// if it was made from a snapshot. One whose store is elsewhere needs more than the
// keys of the network to be one of its controllers.
func (s *Server) ownID(ctx context.Context, claims store.Claims) (string, error) {
	noted, err := s.notedID()
	if err != nil {
		return "", err
	}
	if _, alone := claims.(*store.Alone); alone || s.members() != nil {
		return s.firstID(ctx, noted)
	}
	return s.placeAmong(ctx, claims, noted)
}

// firstID is the id that the data directory has, and else that of the first controller.
func (s *Server) firstID(ctx context.Context, noted string) (string, error) {
	first, err := owner.First(ctx, s.store)
	return cmp.Or(noted, first, roster.FirstID(s.keys.Authorities().Origin)), err
}

// notedID is the id that the data directory has; empty for none.
func (s *Server) notedID() (string, error) {
	text, err := os.ReadFile(s.dir.sub(controllerFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if !roster.ValidID(id) {
		return "", fmt.Errorf("%s holds %.40q, which is not the id of a controller; put back what was there, netkeep list controllers shows it at another", s.dir.sub(controllerFile), id)
	}
	return id, nil
}

// placeAmong is the id of this controller among those that share a store by
// address: it is the first, has joined, is on the list, or takes the place of one
// that is gone where nobody else is there.
func (s *Server) placeAmong(ctx context.Context, claims store.Claims, noted string) (string, error) {
	st, err := s.dir.stage()
	if err != nil {
		return "", err
	}
	ring, err := keyring.Read(ctx, s.store)
	if err != nil {
		return "", err
	}
	list, _ := roster.List(s.state.Snapshot())
	listed := slices.ContainsFunc(list, func(c *model.Controller) bool { return c.ID == noted })
	switch {
	case noted != "" && slices.Contains(ring.Removed, noted):
		return "", errRemoved
	case noted != "" && (listed || st.Stage == stageJoined):
		return noted, nil
	case len(list) == 0:
		return s.firstID(ctx, noted)
	case noted == "" && s.ranBefore(): // when controllers had no ids
		return roster.NewID(), nil
	}
	there, err := awaitNobody(ctx, claims)
	switch {
	case err != nil:
		return "", err
	case there != "" && noted != "":
		return "", errRemoved
	case there != "":
		return "", fmt.Errorf("the network has another controller, %s, and this one was not invited: that %s holds the keys of the network is not enough. Have a token made there with netkeep cluster invite, and start this one with --join TOKEN and an empty data directory", there, s.dir.path)
	}
	return cmp.Or(noted, list[0].ID), nil
}

// ranBefore reports whether a controller ran in this data directory.
func (s *Server) ranBefore() bool {
	_, err := os.Stat(s.dir.sub(addressFile))
	return err == nil
}

// awaitNobody returns the id of another controller that is there; empty if there is
// none, or none any more after a moment.
func awaitNobody(ctx context.Context, claims store.Claims) (string, error) {
	for late := time.Now().Add(goneWait); ; {
		there, err := roster.Present(ctx, claims)
		if err != nil || len(there) == 0 {
			return "", err
		}
		if time.Now().After(late) {
			return there[0], nil
		}
		select {
		case <-time.After(goneAgain):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// noteMember writes down that a controller that has joined is on the list.
func (s *Server) noteMember() error {
	st, err := s.dir.stage()
	if err != nil || st.Stage != stageJoined || s.members() != nil {
		return err
	}
	return s.dir.setStage(stage{Stage: stageMember})
}

// listed are the controllers of a network whose store is elsewhere.
func (s *Server) listed() (out []api.Member) {
	list, _ := roster.List(s.state.Snapshot())
	for _, c := range list {
		out = append(out, s.described(api.Member{ID: c.ID, Name: c.ID, Address: c.Client, Self: c.ID == s.roster.ID()}))
	}
	return out
}

// removeListed takes a controller whose store is elsewhere off the list for good.
// It ends by itself, and does not come back with the data that it has.
func (s *Server) removeListed(ctx context.Context, name string) error {
	list, _ := roster.List(s.state.Snapshot())
	i := slices.IndexFunc(list, func(c *model.Controller) bool { return c.ID == name })
	switch {
	case i < 0:
		return fault.NotFound("member", name)
	case len(list) == 1:
		return fault.New(fault.CodeCluster, "this is the only controller of the network: it cannot be removed")
	}
	_, err := keyring.Change(ctx, s.store, time.Now(), func(r *keyring.Ring) (bool, error) {
		if slices.Contains(r.Removed, name) {
			return false, nil
		}
		r.Removed = append(r.Removed, name)
		r.Removed = r.Removed[max(0, len(r.Removed)-removedMost):]
		delete(r.Holders, name)
		delete(r.Sealed, name)
		return true, nil
	})
	if err != nil {
		return err
	}
	return s.roster.Remove(ctx, name)
}
