package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.uber.org/zap"

	"netkeep.internal/internal/data/store"
)

const (
	// Members of a cluster wait for each other over a network: a leader that is
	// not heard of for a second, more or less, is replaced. Leases of two seconds
	// outlast that.
	peerTickMillis     = 100
	peerElectionMillis = 7 * peerTickMillis
	// A member that was away for so many entries gets those; one that missed
	// more gets everything.
	peerSnapshotCount, peerCatchUpEntries = 1000, 1000

	// maxLearners is how many members without a vote there may be. It must be
	// alike at all members.
	maxLearners = 64

	// peerDialTime is how long a member may take to answer one that joins.
	peerDialTime = 3 * time.Second
)

var (
	// ErrRemoved says that a member was taken out of its cluster. It cannot come
	// back with the data it has.
	ErrRemoved = fmt.Errorf("%w: this member was removed from its cluster", store.ErrFailed)
	// ErrHasPeers says that a directory is that of a member with others, and was
	// opened as if it were alone.
	ErrHasPeers = errors.New("the data is that of a member of a cluster, which the others cannot reach")
)

// Peers is how the members of a cluster reach each other: with TLS, and with a
// certificate of an authority that is there for nothing else.
type Peers struct {
	// Name is that of this member, and no other's.
	Name string
	// Listen and Advertise are hosts and ports: where the member listens, and
	// where the others reach it.
	Listen, Advertise string
	// CA, Cert and Key are files. Both ends of a connection show a certificate
	// of the authority.
	CA, Cert, Key string
	// Join are URLs of members of the cluster to join, which has this one as a
	// learner already. It counts for a directory without data, which without it
	// founds a cluster.
	Join []string
}

// PeerURL is how a member at an address is known to others.
func PeerURL(address string) string { return "https://" + address }

func (p *Peers) tls() transport.TLSInfo {
	return transport.TLSInfo{
		CertFile: p.Cert, KeyFile: p.Key, TrustedCAFile: p.CA, ClientCertAuth: true,
		// Who has a certificate of the authority is one of us, wherever it
		// comes from: there may be an address translation in between.
		SkipClientSANVerify: true,
	}
}

// configure makes of a member that is alone one with peers.
func (p *Peers) configure(ctx context.Context, c *embed.Config, log *zap.Logger) error {
	listen, err := net.ResolveTCPAddr("tcp", p.Listen)
	if err != nil {
		return fmt.Errorf("listen for members: %w", err)
	}
	host := listen.IP.String()
	if listen.IP == nil {
		host = net.IPv6unspecified.String()
	}
	own := url.URL{Scheme: "https", Host: p.Advertise}
	c.Name = p.Name
	c.ListenPeerUrls = []url.URL{{Scheme: "https", Host: net.JoinHostPort(host, fmt.Sprint(listen.Port))}}
	c.AdvertisePeerUrls = []url.URL{own}
	c.InitialCluster = p.Name + "=" + own.String()
	c.PeerTLSInfo, c.TlsMinVersion = p.tls(), "TLS1.3"
	c.TickMs, c.ElectionMs = peerTickMillis, peerElectionMillis
	c.SnapshotCount, c.SnapshotCatchUpEntries = peerSnapshotCount, peerCatchUpEntries
	c.MaxLearners = maxLearners
	if len(p.Join) == 0 || hasData(c.Dir) {
		return p.refuseCopy(ctx, c.Dir, log)
	}
	c.ClusterState = embed.ClusterStateFlagExisting
	c.InitialCluster, err = p.cluster(ctx, log)
	return err
}

// cluster asks the members of a cluster who they are, which a new one must know
// exactly.
func (p *Peers) cluster(ctx context.Context, log *zap.Logger) (string, error) {
	rt, err := rafthttp.NewRoundTripper(p.tls(), peerDialTime)
	if err != nil {
		return "", err
	}
	for {
		found, err := etcdserver.GetClusterFromRemotePeers(log, p.Join, rt)
		if err == nil {
			return p.initial(found.Members())
		}
		select {
		case <-time.After(peerDialTime):
		case <-ctx.Done():
			return "", fmt.Errorf("no member of the cluster answers at %s: %w", strings.Join(p.Join, ", "), err)
		}
	}
}

func (p *Peers) initial(members []*membership.Member) (string, error) {
	var all []string
	found := false
	for _, m := range members {
		name := "member-" + m.ID.String() // whatever it calls itself
		if own := slices.Contains(m.PeerURLs, PeerURL(p.Advertise)); own {
			name, found = p.Name, true
		}
		for _, at := range m.PeerURLs {
			all = append(all, name+"="+at)
		}
	}
	if !found {
		return "", ErrRemoved
	}
	return strings.Join(all, ","), nil
}

// belongs refuses a member that others have no use for, or that has no use for
// the others.
func (m *member) belongs(o Options) error {
	server := m.etcd.Server
	all := server.Cluster().Members()
	switch {
	case server.IsIDRemoved(uint64(server.MemberID())):
		return ErrRemoved
	case len(all) > 1 && o.Peers == nil && !o.Alone:
		return ErrHasPeers
	}
	return nil
}

// settle tells the others where a member is that is not where it was, or that
// was alone.
func (m *member) settle(ctx context.Context, p *Peers) error {
	if p == nil {
		return nil
	}
	server, at := m.etcd.Server, []string{PeerURL(p.Advertise)}
	own := server.Cluster().Member(server.MemberID())
	if own == nil || slices.Equal(own.PeerURLs, at) {
		return nil
	}
	_, err := server.UpdateMember(ctx, membership.Member{ID: own.ID, RaftAttributes: membership.RaftAttributes{PeerURLs: at}})
	if err != nil {
		return fmt.Errorf("tell the other members that this one is at %s: %w", p.Advertise, err)
	}
	return nil
}

// watch fails a member that stops by itself, which it does when it is removed.
func (m *member) watch(fail func(error)) {
	select {
	case <-m.etcd.Server.StopNotify():
		if !m.log.closing.Load() {
			fail(ErrRemoved)
		}
	case <-m.alive.Done():
	}
}

// Member is one of a cluster.
type Member struct {
	ID uint64
	// Name is empty for one that was never started.
	Name string
	URL  string // where the others reach it
	// Learner is whether it has no vote.
	Learner      bool
	Self, Leader bool
}

// Members are those of the cluster that a member of our own is in, as far as it has
// heard, also when it cannot reach the others; nil for a cluster by address, which
// others look after.
func (s *Store) Members(ctx context.Context) ([]Member, error) {
	ctx, done, err := s.read(ctx)
	if err != nil || s.member == nil {
		return nil, err
	}
	defer done()
	resp, err := s.client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil, explain(ctx, "list the members", err)
	}
	server := s.member.etcd.Server
	var all []Member
	for _, m := range resp.Members {
		all = append(all, Member{
			ID: m.ID, Name: m.Name, URL: strings.Join(m.PeerURLs, ","), Learner: m.IsLearner,
			Self: m.ID == uint64(server.MemberID()), Leader: m.ID == server.Lead(),
		})
	}
	return all, nil
}

// errNoMember is of what only a member of our own can do.
var errNoMember = errors.New("the store is a cluster by address, and its members are its operators'")

// changeMembers makes a change of who is a member.
func (s *Store) changeMembers(ctx context.Context, doing string, change func(ctx context.Context) error) error {
	if s.member == nil {
		return errNoMember
	}
	ctx, done, err := s.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := change(ctx); err != nil {
		return explain(ctx, doing, err)
	}
	return nil
}

// AddLearner adds a member without a vote that will be at an address, and
// returns its id. SameAddress tells whether it fails because one is there.
func (s *Store) AddLearner(ctx context.Context, address string) (id uint64, err error) {
	err = s.changeMembers(ctx, "add a member", func(ctx context.Context) error {
		resp, err := s.client.MemberAddAsLearner(ctx, []string{PeerURL(address)})
		if err == nil {
			id = resp.Member.ID
		}
		return err
	})
	return id, err
}

// Promote gives a member a vote. It fails for one that has not caught up.
func (s *Store) Promote(ctx context.Context, id uint64) error {
	return s.changeMembers(ctx, "give a member a vote", func(ctx context.Context) error {
		_, err := s.client.MemberPromote(ctx, id)
		return err
	})
}

// Remove takes a member out of the cluster for good.
func (s *Store) Remove(ctx context.Context, id uint64) error {
	return s.changeMembers(ctx, "remove a member", func(ctx context.Context) error {
		_, err := s.client.MemberRemove(ctx, id)
		return err
	})
}

// Unsettled reports whether a change of members failed only because the cluster
// is not ready for it yet: a member has not caught up, or has just come or gone.
func Unsettled(err error) bool {
	for _, e := range []error{rpctypes.ErrMemberLearnerNotReady, rpctypes.ErrUnhealthy, rpctypes.ErrMemberNotEnoughStarted, rpctypes.ErrTimeout, rpctypes.ErrNoLeader} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// SameAddress reports whether a member was not added because another has its
// address.
func SameAddress(err error) bool { return errors.Is(err, rpctypes.ErrPeerURLExist) }
