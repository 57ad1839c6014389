// Package etcdstore is the engine of the log: etcd, as a member inside this
// process or as a cluster by address. It owns the layout of keys, the limits
// of a batch and the care of a data directory. It imports store and disk
// and nothing else of ours.
//
// A record is the key r/<kind>/<id>, an entry log/<kind>/<id>. Every batch is one transaction, and its
// last key closes it: head for a Commit, put for a Put. Both say how many ops
// the batch has; head names the commit before, and etcd counts the writes of
// put. So Follow can tell a whole batch from a part, and notices when one is
// missing.
//
// A batch that no transaction can hold is staged: its ops are written in parts,
// s/<id>/<n>, and the transaction that closes it names them. It has happened
// then. The key hold keeps all other writes away until the parts are carried out
// to the records, by whoever gets to it, each in a transaction that hold closes.
// Who reads meanwhile takes what is left of the parts along. Records that were
// carried out have a later revision in etcd than their batch; large/<revision>
// was written when it was done, so that one can be told from the other.
package etcdstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"netkeep.internal/internal/data/store"
)

// closeGrace is how long Close waits for writes under way. A cluster that
// does not answer must not keep a process from ending.
const closeGrace = 5 * time.Second

// Options says where the data is and how to reach it.
type Options struct {
	// Dir is the data directory of the member that Open starts.
	Dir string
	// Peers is how that member and others of its cluster reach each other; nil
	// for one that is alone.
	Peers *Peers
	// Alone makes the member the only one of its cluster and forgets the others,
	// for when most of them are lost.
	Alone bool

	// Endpoints are the addresses of the cluster that Dial uses.
	Endpoints []string
	// TLS secures the connections of Dial; nil is plain text.
	TLS *tls.Config
	// Username and Password sign in to a cluster that asks for it.
	Username, Password string

	// Prefix lets several networks share one cluster. It becomes the first
	// part of every key; none may be beneath another.
	Prefix string
	// Limits replaces, where not 0, the limits of Dial for a cluster that is
	// set up for more or for less than etcd's defaults.
	Limits store.Limits
	// Logger gets what etcd warns of; nil is slog.Default.
	Logger *slog.Logger
}

func (o Options) logger() *slog.Logger {
	if o.Logger != nil {
		return o.Logger
	}
	return slog.Default()
}

// Store is a store.Store kept by etcd.
type Store struct {
	client *clientv3.Client
	member *member      // nil for a cluster by address
	alone  *store.Alone // nil for one that others share
	keys   keyspace
	quick  store.Limits // of a transaction
	spans  *spans
	tail   tail
	fence  fence

	// patience is how long a staged batch may stand still before somebody else
	// sees to it.
	patience time.Duration

	reading    context.Context // ends with Close, or when the member fails
	writing    context.Context // ends a grace later
	stopReads  context.CancelCauseFunc
	stopWrites context.CancelCauseFunc

	mu      sync.Mutex
	closed  bool
	writes  sync.WaitGroup
	release func() error // what Close does at the end
}

var _ store.Store = (*Store)(nil)

// newStore makes a handle that lives at most as long as alive.
func newStore(alive context.Context, client *clientv3.Client, prefix string, quick store.Limits, release func() error) *Store {
	keys := newKeyspace(prefix)
	s := &Store{client: client, keys: keys, quick: quick, spans: &spans{keys: keys}, patience: stillFor, release: release}
	s.reading, s.stopReads = context.WithCancelCause(alive)
	s.writing, s.stopWrites = context.WithCancelCause(alive)
	return s
}

// Limits is what one Commit or Put may hold, in several transactions if it must.
func (s *Store) Limits() store.Limits {
	return store.Limits{Ops: max(largeLimits.Ops, s.quick.Ops), Bytes: max(largeLimits.Bytes, s.quick.Bytes)}
}

// Quick is what one transaction may hold.
func (s *Store) Quick() store.Limits { return s.quick }

// Size is how many bytes the file of a member of our own has; not ok for a
// cluster, which others look after.
func (s *Store) Size() (n int64, ok bool) {
	if s.member == nil {
		return 0, false
	}
	return s.member.etcd.Server.Backend().Size(), true
}

// Close ends everything that reads, waits a few seconds for writes under way
// and stops the member if Open started one.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()

	s.stopReads(store.ErrClosed)
	grace := time.AfterFunc(closeGrace, func() { s.stopWrites(errClosing) })
	s.writes.Wait()
	grace.Stop()
	s.stopWrites(errClosing)
	return s.release()
}

// errClosing is not store.ErrClosed, which would promise that nothing was
// written.
var errClosing = errors.New("closed before the write was answered")

// read returns ctx, ended also by Close and by the member's failure.
func (s *Store) read(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := context.Cause(s.reading); err != nil {
		return nil, nil, err
	}
	if err := unended(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := either(ctx, s.reading)
	return ctx, cancel, nil
}

// write is read for what Close waits for.
func (s *Store) write(ctx context.Context) (context.Context, context.CancelFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, store.ErrClosed
	}
	if err := context.Cause(s.writing); err != nil {
		return nil, nil, err
	}
	if err := unended(ctx); err != nil {
		return nil, nil, err
	}
	s.writes.Add(1)
	ctx, cancel := either(ctx, s.writing)
	return ctx, func() { cancel(); s.writes.Done() }, nil
}

// unended returns an error for a context that has ended before anything was asked.
// etcd looks for that only where it waits: it may have written by then.
func unended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("etcd: not asked: %w", err)
	}
	return nil
}

// either returns ctx, ended also when life ends.
func either(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, lifeKey{}, life))
	stop := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { stop(); cancel(nil) }
}

// lifeKey is where a context of either has the life that ends it.
type lifeKey struct{}

// cause is why a context of either has ended, or is about to: its life's end
// reaches it a moment later than it reaches etcd.
func cause(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if life, ok := ctx.Value(lifeKey{}).(context.Context); ok {
		return context.Cause(life)
	}
	return nil
}

// explain turns what etcd returned into what the contract says. ctx is the
// one the call was made with, so that its end can be told from a failure.
func explain(ctx context.Context, doing string, err error) error {
	cause := cause(ctx)
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return store.ErrCompacted
	case errors.Is(err, rpctypes.ErrRequestTooLarge), errors.Is(err, rpctypes.ErrTooManyOps):
		return fmt.Errorf("%w of the server: %w", store.ErrTooLarge, err)
	case oversized(err):
		return fmt.Errorf("%w of a message: %w", store.ErrTooLarge, err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("etcd: %s: the store is full, compact its history: %w", doing, err)
	case errors.Is(cause, store.ErrClosed), errors.Is(cause, store.ErrFailed):
		return cause
	case errors.Is(cause, errClosing):
		return fmt.Errorf("etcd: %s: %w", doing, cause)
	case ctx.Err() != nil:
		return fmt.Errorf("etcd: %s: %w", doing, ctx.Err())
	}
	return fmt.Errorf("etcd: %s: %w", doing, err)
}

// oversized reports whether the client did not send a request, or the server
// did not read it, for its size.
func oversized(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}

// keyspace names the keys of one network.
type keyspace struct {
	prefix  string
	claims  string // what the keys of claims begin with, before all that is followed
	fences  string // what the keys of fences begin with, before it too
	head    string // closes a Commit
	hold    string // closes what is carried out of a staged batch
	large   string // what the keys begin with that say when staged batches were done
	entries string // what every entry's key begins with
	put     string // closes a Put
	records string // what every record's key begins with
	end     string // the first key after all records, and after the keys above
	staging string // what the key of every part begins with
}

func newKeyspace(prefix string) keyspace {
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return keyspace{
		prefix:  prefix,
		claims:  prefix + "claim/",
		fences:  prefix + "fence/",
		head:    prefix + "head",
		hold:    prefix + "hold",
		large:   prefix + "large/",
		entries: prefix + "log/",
		put:     prefix + "put",
		records: prefix + "r/",
		end:     prefix + "r0", // '0' follows '/'
		staging: prefix + "s/",
	}
}

// record is where a record or an entry is.
func (k keyspace) record(key string) string {
	if store.IsEntry(key) {
		return k.entries + key[len(store.EntryMark):]
	}
	return k.records + key
}

// name is the key of the record or entry that is in a place; not ok if none is.
func (k keyspace) name(place string) (key string, ok bool) {
	if rest, is := strings.CutPrefix(place, k.entries); is {
		return store.EntryMark + rest, rest != ""
	}
	rest, is := strings.CutPrefix(place, k.records)
	return rest, is && rest != ""
}

// parts is what the keys of a staged batch's parts begin with.
func (k keyspace) parts(id string) string { return k.staging + id + "/" }

// part is where a part is. Keys are in the order of parts.
func (k keyspace) part(id string, n int) string { return fmt.Sprintf("%s%06d", k.parts(id), n) }

// done is where it is said when a staged batch was carried out.
func (k keyspace) done(rev int64) string { return fmt.Sprintf("%s%016x", k.large, rev) }
