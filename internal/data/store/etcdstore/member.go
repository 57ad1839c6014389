package etcdstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"netkeep.internal/internal/data/store"
)

// memberLimits is what a transaction may hold in a member of our own.
var memberLimits = store.Limits{Ops: 8192, Bytes: 16 << 20}

const (
	memberName = "netkeep"
	// memberPeer identifies the member in its own cluster of one. Nothing
	// listens there.
	memberPeer = "http://localhost:1"

	// requestMargin is what keys, guards and framing may add to a batch.
	requestMargin = 4 << 20
	quota         = 8 << 30

	// A cluster of one has nobody to wait for: short ticks elect it at once.
	tickMillis     = 20
	electionMillis = 5 * tickMillis

	// The member keeps its log in memory until it has saved a snapshot, and
	// reads it again when it starts. Both must fit batches of a megabyte;
	// fewer entries a snapshot cost more syncs than they save memory.
	snapshotCount  = 200
	catchUpEntries = 10

	// reclaimLeast is the free space that is worth defragmenting for, if it
	// is also more than half of the file.
	reclaimLeast = 64 << 20

	// closeFailedWait is how long a member that has failed may take to stop. Those
	// who listen to it are given a second to go.
	closeFailedWait = 3 * time.Second
)

// A log of its own takes two of these from the disk at once. etcd's own measure
// is 64 MB, which makes sense for a cluster and not for a new data directory.
func init() { wal.SegmentSizeBytes = 4 << 20 }

// member is an etcd server inside this process.
type member struct {
	etcd    *embed.Etcd
	lock    *fileutil.LockedFile
	log     *bridge
	alive   context.Context // ends when the member fails
	quota   int64
	reclaim int64        // free space that pays to defragment
	defrag  sync.RWMutex // held for reading by snapshots
	alone   *store.Alone // the claims on a member that nobody shares
	mapped  *mapped
}

// Open starts an etcd member in this process, with its data under o.Dir, and
// returns when it is ready. It listens on no address, unless it has peers. The directory belongs
// to one process at a time. Reading a large directory cannot be interrupted:
// when ctx ends before, Open returns and the member is stopped once it can be.
func Open(ctx context.Context, o Options) (*Store, error) {
	m, err := startMember(ctx, o, func(*embed.Config) {})
	if err != nil {
		return nil, err
	}
	return m.handle(o.Prefix, m.close), nil
}

// handle returns a store on the member; last is called when it is closed.
func (m *member) handle(prefix string, last func() error) *Store {
	client := v3client.New(m.etcd.Server)
	s := newStore(m.alive, client, prefix, memberLimits, func() error {
		_ = client.Close() // says only that its context has ended
		return last()
	})
	s.member, s.alone = m, m.alone
	return s
}

// startMember starts a member that is set up by memberConfig and then tune.
func startMember(ctx context.Context, o Options, tune func(*embed.Config)) (*member, error) {
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	if err := begin(o.Dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := sound(o.Dir); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", o.Dir, err), lock.Close())
	}
	alive, fail := context.WithCancelCause(context.Background())
	m := &member{lock: lock, alive: alive, reclaim: reclaimLeast, log: &bridge{log: o.logger(), fail: fail}}
	cfg := memberConfig(o.Dir, m.log.logger())
	cfg.ForceNewCluster = o.Alone
	if o.Peers == nil {
		m.alone = store.NewAlone()
	} else {
		if err := o.Peers.configure(ctx, cfg, m.log.logger()); err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", o.Dir, err), lock.Close())
		}
	}
	tune(cfg)
	m.quota = cfg.QuotaBackendBytes

	started := make(chan error, 1)
	go func() {
		// etcd panics on files that are beyond reading.
		defer func() {
			if p := recover(); p != nil {
				started <- fmt.Errorf("the data cannot be read: %v", p)
			}
		}()
		// Not sent if the goroutine is ended by a failure.
		e, err := embed.StartEtcd(cfg)
		m.etcd = e
		started <- err
	}()
	select {
	case err = <-started:
	case <-m.alive.Done():
		return nil, fmt.Errorf("open %s: %w", o.Dir, context.Cause(m.alive))
	case <-ctx.Done():
		go m.abandon(started)
		return nil, fmt.Errorf("open %s: %w", o.Dir, ctx.Err())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", o.Dir, err), lock.Close())
	}
	m.mapped = mappedIn(o.Dir)
	if err = m.ready(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", o.Dir, err), m.close())
	}
	go m.watch(fail)
	return m, nil
}

// ready waits until a member that was started is one of its cluster.
func (m *member) ready(ctx context.Context, o Options) error {
	if err := m.belongs(o); err != nil {
		return err
	}
	select {
	case <-m.etcd.Server.ReadyNotify():
	case <-m.etcd.Server.StopNotify():
		return ErrRemoved // for all else it fails
	case <-m.alive.Done():
		return context.Cause(m.alive)
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := m.settle(ctx, o.Peers); err != nil {
		return err
	}
	return begun(o.Dir)
}

// abandon closes a member that nobody waits for, once it has started.
func (m *member) abandon(started <-chan error) {
	m.log.closing.Store(true)
	select {
	case err := <-started:
		if err == nil {
			m.etcd.Close()
		}
		m.lock.Close()
	case <-m.alive.Done(): // the lock stays: etcd may hold files
	}
}

func memberConfig(dir string, log *zap.Logger) *embed.Config {
	c := embed.NewConfig()
	c.Name = memberName
	c.Dir = dir
	c.InitialCluster = memberName + "=" + memberPeer
	peer, _ := url.Parse(memberPeer)
	c.AdvertisePeerUrls = []url.URL{*peer}
	c.ListenPeerUrls = nil
	c.ListenClientUrls, c.AdvertiseClientUrls = nil, nil
	c.EnableGRPCGateway = false
	// No two clusters are alike, also if all else of them is.
	c.InitialClusterToken = rand.Text()
	c.AuthToken = "" // there is nobody to sign in
	c.TickMs, c.ElectionMs = tickMillis, electionMillis
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotCount, catchUpEntries
	c.QuotaBackendBytes = quota
	c.WarningApplyDuration = time.Second
	c.MaxTxnOps = uint(memberLimits.Ops + extraOps)
	c.MaxRequestBytes = uint(memberLimits.Bytes + requestMargin)
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	return c
}

// close stops the member. One that has failed may not be able to stop, and
// then keeps its directory.
func (m *member) close() error {
	m.log.closing.Store(true)
	m.mapped.end()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		m.etcd.Close()
	}()
	select {
	case <-stopped:
		return errors.Join(context.Cause(m.alive), m.lock.Close())
	case <-m.alive.Done():
	}
	select {
	case <-stopped:
		return errors.Join(context.Cause(m.alive), m.lock.Close())
	case <-time.After(closeFailedWait):
		return context.Cause(m.alive)
	}
}
