package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/pki"
)

const (
	// clusterFile is where in the data directory it is said how the controller
	// came to its network, and controllerFile how it is known there.
	clusterFile    = "cluster"
	controllerFile = "controller"

	// maxVoters is how many controllers decide together. More would only wait
	// for more of each other: they follow.
	maxVoters = 5
	// memberCare is how often it is looked at whether the members are well.
	memberCare = 10 * time.Second
	// memberWait is how long a store takes to open before it is said what it waits
	// for.
	memberWait = 5 * time.Second
	// memberChange is how long a change of members may take, with the time that
	// a cluster needs after the one before.
	memberChange = 20 * time.Second
)

// The stages of a controller that is one of several.
const (
	stageFounder = "founder" // it began the cluster
	stageJoining = "joining" // it has asked to join, and nothing of it counts
	stageJoined  = "joined"  // it has the keys
	stageMember  = "member"  // its store was ready once
)

// stage is what clusterFile holds.
type stage struct {
	Stage   string   `json:"stage"`
	Members []string `json:"members,omitempty"` // whom to ask for the store
}

// stage reads it; the zero value is that of a controller that was always alone.
func (d *dir) stage() (st stage, err error) {
	text, err := os.ReadFile(d.sub(clusterFile))
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &st)
	}
	if err != nil {
		return st, fmt.Errorf("read how this controller came to its network: %s: %w; restore the data directory from a backup", d.sub(clusterFile), err)
	}
	return st, nil
}

// setStage writes it, so that a crash at any time leaves one or the other.
func (d *dir) setStage(st stage) error {
	text, err := json.Marshal(st)
	if err != nil {
		return err
	}
	f, err := disk.NewFile(d.sub(clusterFile), true)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return f.Write(append(text, '\n'))
}

// hasStore reports whether there is one in the data directory.
func (d *dir) hasStore() bool {
	_, err := os.Stat(d.sub(storeDir + "/member"))
	return err == nil
}

// errRemoved is what a controller ends with that others do not count any more.
var errRemoved = errors.New("this controller was removed from its cluster, and cannot come back with the data it has: to have it join again, start it with an empty data directory and a new token of netkeep cluster invite")

// errOutdated is what a controller ends with whose data was put back.
var errOutdated = errors.New("the data directory is older than what this controller had told the others: it was put back from a copy, or a copy of it ran. Take the controller out with netkeep cluster remove at another one, and have it join again with an empty data directory and a token of netkeep cluster invite")

// openMember starts the store inside this process, alone or as one of several.
func (s *Server) openMember(ctx context.Context) (store.Store, error) {
	opt := etcdstore.Options{Dir: s.dir.sub(storeDir), Logger: s.log}
	st, err := s.dir.stage()
	if err != nil {
		return nil, err
	}
	if err := s.checkStage(st); err != nil {
		return nil, err
	}
	if s.cfg.Cluster.Listen != "" {
		if opt.Peers, err = s.peers(st); err != nil {
			return nil, err
		}
	}
	waits := time.AfterFunc(memberWait, func() {
		if opt.Peers == nil {
			return // it reads what it has, which may be much
		}
		s.log.Warn("this controller waits for the others: the store opens when more than half of those with a vote run and reach each other; if they are lost for good, netkeep help cluster recover says what to do", "listen", s.cfg.Cluster.Listen, "advertise", s.peerAddress())
	})
	own, err := etcdstore.Open(ctx, opt)
	waits.Stop()
	switch {
	case errors.Is(err, etcdstore.ErrRemoved):
		return nil, errRemoved
	case errors.Is(err, etcdstore.ErrHasPeers):
		return nil, s.errNoListener()
	case errors.Is(err, etcdstore.ErrOutdated):
		return nil, errOutdated
	case errors.Is(err, etcdstore.ErrCopied):
		return nil, fmt.Errorf("%w: this directory is a copy of its data, and each controller has its own. Stop that one first, or have another join with an empty data directory and a token of netkeep cluster invite", err)
	case err != nil:
		return nil, err
	}
	switch {
	case st.Stage == stageJoined:
		err = s.dir.setStage(stage{Stage: stageMember, Members: st.Members})
	case st.Stage == "" && opt.Peers != nil:
		err = s.dir.setStage(stage{Stage: stageFounder})
	}
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	return own, nil
}

func (s *Server) errNoListener() error {
	return fmt.Errorf("the store in %s is kept together with other controllers: start it with --cluster-listen, as before; if the others are lost for good, netkeep cluster recover --data %s makes it the only one", s.dir.path, s.dir.path)
}

// checkStage refuses to found another network, or another store, in the place of
// one that was joined.
func (s *Server) checkStage(st stage) error {
	joined := st.Stage == stageJoined || st.Stage == stageMember
	switch {
	case st.Stage == stageJoining:
		return fmt.Errorf("this controller has begun to join a network and was cut short: start it again with --join and a new token of netkeep cluster invite, or empty %s", s.dir.path)
	case joined && s.cfg.Cluster.Listen == "":
		return s.errNoListener()
	case st.Stage == stageMember && !s.dir.hasStore():
		return fmt.Errorf("the store of this controller is gone from %s, and without it the controller would undo what the others decided: remove it with netkeep cluster remove, empty %s and start it with --join and a new token", s.dir.sub(storeDir), s.dir.path)
	}
	return nil
}

// peerAddress is where other controllers reach the store of this one; empty if
// they cannot.
func (s *Server) peerAddress() string {
	c := s.cfg.Cluster
	if c.Advertise != "" || c.Listen == "" {
		return c.Advertise
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if own, _, bad := net.SplitHostPort(s.cfg.Advertise); err == nil && bad == nil && everywhere(net.ParseIP(host)) && (host == "" || net.ParseIP(host) != nil) {
		return net.JoinHostPort(own, port)
	}
	return c.Listen
}

// peers is how this controller and the others reach each other's store.
func (s *Server) peers(st stage) (*etcdstore.Peers, error) {
	files, err := s.openPeer(st.Stage == "")
	if err != nil {
		return nil, err
	}
	s.trusts = rootNames(files.Trusted)
	name, err := s.memberName()
	return &etcdstore.Peers{
		Name: name, Listen: s.cfg.Cluster.Listen, Advertise: s.peerAddress(),
		CA: files.CA, Cert: files.Cert, Key: files.Key, Join: st.Members,
	}, err
}

// openPeer opens the certificate that this controller shows the others, and
// renews it when it is due.
func (s *Server) openPeer(make bool) (pki.PeerFiles, error) {
	p := pki.Peer{Make: make, Now: time.Now, Log: s.log}
	host, _, err := net.SplitHostPort(s.peerAddress())
	if err != nil {
		return pki.PeerFiles{}, fmt.Errorf("cluster.advertise: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil {
		p.IPs = []net.IP{ip}
	} else {
		p.DNSNames = []string{host}
	}
	return p.Open(s.dir.sub(keysDir))
}

// memberName is how a member is called: as the controller is.
func (s *Server) memberName() (string, error) {
	if line, err := os.ReadFile(s.dir.sub(controllerFile)); err == nil {
		return strings.TrimSpace(string(line)), nil
	}
	keys, err := pki.Read(s.dir.sub(keysDir))
	if err != nil || keys == nil {
		return unnamed, err
	}
	return roster.FirstID(keys.Origin), nil
}

// unnamed is how the first controller of a network calls itself before it has
// keys.
const unnamed = "netkeep"

// members is the store as one that has some; nil if others keep it.
func (s *Server) members() *etcdstore.Store {
	own, ok := s.store.(*etcdstore.Store)
	if !ok || s.cfg.Cluster.Listen == "" {
		return nil
	}
	return own
}

// watchMembers gives this controller a vote once it has caught up, and warns of
// a cluster that survives nothing.
func (s *Server) watchMembers(ctx context.Context, every time.Duration) {
	own, warned := s.members(), false
	if own == nil {
		return
	}
	for wait := every; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = memberCare
		all, err := own.Members(ctx)
		if err != nil {
			continue // of which others tell
		}
		voters := 0
		for _, m := range all {
			if !m.Learner {
				voters++
			}
		}
		i := slices.IndexFunc(all, func(m etcdstore.Member) bool { return m.Self })
		if i >= 0 && all[i].Learner && voters < maxVoters {
			wait = every
			if err := own.Promote(ctx, all[i].ID); err == nil {
				s.log.Info("this controller has caught up with the others, and has a vote from now on", "votes", voters+1)
				s.tellMember(audit.MemberPromoted, s.roster.ID(), "it has caught up with the others")
				voters++
			} else if !etcdstore.Unsettled(err) {
				s.log.Warn("this controller could not be given a vote; trying again", "error", err)
			}
		}
		s.votes.Store(int64(voters))
		s.dropStrangers(ctx, all)
		if two := voters == 2; two != warned {
			if warned = two; two {
				s.log.Warn("two controllers keep the store, and without either nothing can be changed: add a third with netkeep cluster invite")
			}
		}
	}
}

// tellMember has the audit log tell of what a controller does itself about those that
// keep the store.
func (s *Server) tellMember(event *audit.Event, id, reason string) {
	s.recorder.Note(audit.Fact{Event: event, By: state.Program("cluster"), Target: audit.Target{Kind: model.Controllers.Def.Name, ID: id, Name: id}, Reason: reason})
}

// dropStrangers takes controllers off the list that are not there and keep the store
// no more: after a recovery or a restore it has those of before.
func (s *Server) dropStrangers(ctx context.Context, members []etcdstore.Member) {
	if !slices.ContainsFunc(members, func(m etcdstore.Member) bool { return m.Self && m.Leader }) {
		return
	}
	list, _ := roster.List(s.state.Snapshot())
	for _, c := range list {
		if s.roster.Online(c.ID) || slices.ContainsFunc(members, func(m etcdstore.Member) bool { return s.nameOf(m) == c.ID }) {
			continue
		}
		if err := s.roster.Remove(ctx, c.ID); err != nil {
			s.log.Warn("a controller that keeps the store no more could not be taken off the list; trying again", "controller", c.ID, "error", err)
			continue
		}
		s.log.Info("a controller that keeps the store no more was taken off the list", "controller", c.ID)
		s.tellMember(audit.MemberRemoved, c.ID, "it keeps the store no more")
	}
}

// renewPeer keeps the certificate for the others from running out, and has one of the
// CA that signs now. What uses it reads it anew.
func (s *Server) renewPeer() error {
	if s.cfg.Cluster.Listen == "" {
		return nil
	}
	_, err := s.openPeer(false)
	return err
}

// catchUpPeer tries again what failed when keys were handed over. The keys are there by
// then, so that nobody hands them over a second time.
func (s *Server) catchUpPeer() error {
	if !s.peerLate.Load() {
		return nil
	}
	err := s.renewPeer()
	s.peerLate.Store(err != nil)
	return err
}

// settled tries a change of members until the cluster is ready for it.
func settled(ctx context.Context, change func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, memberChange)
	defer cancel()
	for {
		err := change(ctx)
		if err == nil || !etcdstore.Unsettled(err) {
			return err
		}
		select {
		case <-time.After(time.Second / 2):
		case <-ctx.Done():
			return cmp.Or(err, ctx.Err())
		}
	}
}
