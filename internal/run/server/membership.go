package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
)

// cluster is the controllers of a network, for those who look after them.
type cluster struct{ s *Server }

// Invite makes a token with which one controller may join.
func (c cluster) Invite(ctx context.Context) (token string, expires time.Time, err error) {
	return c.s.invite(ctx)
}

// Members lists those that keep the store, or if others do, those that share it.
func (c cluster) Members(ctx context.Context) ([]api.Member, error) {
	own := c.s.members()
	switch {
	case own == nil && c.s.cfg.Shared():
		return c.s.listed(), nil
	case own == nil:
		return nil, nil
	}
	all, err := own.Members(ctx)
	var out []api.Member
	for _, m := range all {
		out = append(out, c.s.described(api.Member{
			ID: memberID(m), Name: c.s.nameOf(m), Address: strings.TrimPrefix(m.URL, etcdstore.PeerURL("")),
			Vote: !m.Learner, Leader: m.Leader, Self: m.Self,
		}))
	}
	return out, err
}

// described adds what a controller tells of itself.
func (s *Server) described(m api.Member) api.Member {
	if rec, ok := model.Controllers.Get(s.state.Snapshot(), m.Name); ok {
		m.Version, m.Online = rec.Version, s.roster.Online(m.Name)
	}
	if ring := s.ring.Load(); ring != nil {
		m.KeyGeneration = ring.Holders[m.Name].Generation
	}
	h, ok := s.reports.of(m.Name)
	if m.Self {
		h, ok = heardOf{report: s.howItIs(), at: time.Now(), there: true}, true
	}
	if !ok {
		return m
	}
	m.Version, m.LastSeen, m.Behind, m.StoreSize, m.Routers = h.Version, &h.at, h.Behind, h.Size, h.Routers
	return m
}

// nameOf is the id of the controller that a member is. The first of a network had
// no keys yet when it began, and calls itself by its id from its next start on.
func (s *Server) nameOf(m etcdstore.Member) string {
	if m.Name == unnamed {
		return roster.FirstID(s.keys.Authorities().Origin)
	}
	return m.Name
}

func memberID(m etcdstore.Member) string { return strconv.FormatUint(m.ID, 16) }

// Promote gives a member a vote.
func (c cluster) Promote(ctx context.Context, name string) error {
	return c.change(ctx, name, func(ctx context.Context, own *etcdstore.Store, m etcdstore.Member, all []etcdstore.Member) error {
		voters := 0
		for _, other := range all {
			if !other.Learner {
				voters++
			}
		}
		switch {
		case !m.Learner:
			return fault.New(fault.CodeCluster, fmt.Sprintf("the controller %s has a vote", name))
		case voters >= maxVoters:
			return fault.New(fault.CodeCluster, fmt.Sprintf("%d controllers have a vote, and more would only wait for more of each other: remove one first", voters))
		}
		return own.Promote(ctx, m.ID)
	})
}

// Remove takes a member out for good.
func (c cluster) Remove(ctx context.Context, name string) error {
	if c.s.members() == nil && c.s.cfg.Shared() {
		return c.s.removeListed(ctx, name)
	}
	return c.change(ctx, name, func(ctx context.Context, own *etcdstore.Store, m etcdstore.Member, all []etcdstore.Member) error {
		if len(all) == 1 {
			return fault.New(fault.CodeCluster, "this is the only controller that keeps the store: it cannot be removed")
		}
		if err := own.Remove(ctx, m.ID); err != nil {
			return err
		}
		return c.s.roster.Remove(ctx, c.s.nameOf(m))
	})
}

// change finds a member by its id or name, and does something to it once the
// cluster is ready for it.
func (c cluster) change(ctx context.Context, name string, do func(context.Context, *etcdstore.Store, etcdstore.Member, []etcdstore.Member) error) error {
	own := c.s.members()
	if own == nil {
		return fault.New(fault.CodeCluster, "this controller does not keep its store together with others: start it with --cluster-listen, or ask the operators of its etcd cluster")
	}
	all, err := own.Members(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(m etcdstore.Member) bool { return memberID(m) == name || c.s.nameOf(m) == name && name != "" })
	if i < 0 {
		return fault.NotFound("member", name)
	}
	err = settled(ctx, func(ctx context.Context) error { return do(ctx, own, all[i], all) })
	if etcdstore.Unsettled(err) {
		return fault.Wrap(fault.CodeCluster, fmt.Errorf("the other members do not agree to it yet, as far as they can be reached, or it has not caught up: try again; %w", err))
	}
	return err
}
