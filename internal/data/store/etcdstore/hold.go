package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

const (
	// stillFor is how long a staged batch may stand still. Whoever works on it
	// moves it many times in that.
	stillFor = 2 * time.Second
	// idSize is how long the name of a staged batch is.
	idSize = 26
	// lookEvery is how often to look whether it still does.
	lookEvery = 20 * time.Millisecond
)

// staged is where the ops of a batch are.
type staged struct {
	ID    string `json:"id"`
	Parts int    `json:"parts"`
}

// hold is a staged batch that keeps all other writes away.
type hold struct {
	staged
	// Closes names the key that closes the batch, once that is written. Before,
	// the batch may be put aside.
	Closes string `json:"closes,omitempty"`

	made, moved int64 // when its key was made, and last written
}

func (h *hold) text() string {
	value, err := json.Marshal(h)
	if err != nil {
		panic(err) // it is made of words and numbers
	}
	return string(value)
}

func holdOf(kvs []*mvccpb.KeyValue) (*hold, error) {
	if len(kvs) == 0 {
		return nil, nil
	}
	h := &hold{made: kvs[0].CreateRevision, moved: kvs[0].ModRevision}
	if err := json.Unmarshal(kvs[0].Value, h); err != nil {
		return nil, fmt.Errorf("etcd: hold of revision %d: %w", h.moved, err)
	}
	return h, nil
}

// held reads who holds the store; nil is nobody.
func (s *Store) held(ctx context.Context, at ...clientv3.OpOption) (*hold, error) {
	resp, err := s.patientGet(ctx, s.keys.hold, at...)
	if err != nil {
		return nil, explain(ctx, "look for a staged batch", err)
	}
	return holdOf(resp.Kvs)
}

// closedAt reads when a staged batch was closed.
func (s *Store) closedAt(ctx context.Context, h *hold, at ...clientv3.OpOption) (int64, error) {
	resp, err := s.patientGet(ctx, s.keys.prefix+h.Closes, append(at, clientv3.WithKeysOnly())...)
	if err != nil {
		return 0, explain(ctx, "read a staged batch", err)
	}
	if len(resp.Kvs) == 0 {
		return 0, fmt.Errorf("etcd: nothing closes the staged batch %s", h.ID)
	}
	return resp.Kvs[0].ModRevision, nil
}

// settle returns when nobody holds the store. It waits for whoever does to end,
// and if that stands still ends it: what is decided is carried out, the rest is
// put aside.
func (s *Store) settle(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	last, still := int64(0), time.Duration(0)
	for {
		h, err := s.held(ctx)
		if h == nil || err != nil {
			return err
		}
		if still += lookEvery; h.moved != last {
			last, still = h.moved, 0
		}
		if still >= s.patience {
			if err := s.end(ctx, h); err != nil {
				return err
			}
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return explain(ctx, "wait for a staged batch", ctx.Err())
		}
	}
}

// end sees to somebody else's batch.
func (s *Store) end(ctx context.Context, h *hold) error {
	if h.Closes == "" {
		return s.putAside(ctx, h)
	}
	rev, err := s.closedAt(ctx, h)
	if err != nil {
		return err
	}
	parts, err := s.parts(ctx, h.ID)
	if err != nil {
		return err
	}
	return s.carryOut(ctx, h, rev, parts)
}

// parts reads what is left of a staged batch.
func (s *Store) parts(ctx context.Context, id string, at ...clientv3.OpOption) (parts []part, err error) {
	resp, err := s.patientGet(ctx, s.keys.parts(id), append(at, clientv3.WithPrefix())...)
	if err != nil {
		return nil, explain(ctx, "read a staged batch", err)
	}
	for _, kv := range resp.Kvs {
		var p part
		if _, err := fmt.Sscan(string(kv.Key[len(s.keys.parts(id)):]), &p.n); err != nil {
			return nil, errPart
		}
		if p.ops, err = decodePart(kv.Value); err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// carryOut writes the parts of a batch that has happened to the records, and
// lets others write again.
func (s *Store) carryOut(ctx context.Context, h *hold, rev int64, parts []part) error {
	err := each(ctx, parts, func(ctx context.Context, p part) error { return s.carry(ctx, h, p) })
	if err != nil {
		return err
	}
	resp, err := s.patientTxn(ctx, []clientv3.Cmp{made(s.keys.hold, h.made)},
		clientv3.OpPut(s.keys.done(rev), ""), clientv3.OpDelete(s.keys.hold), s.spans.read())
	if err == nil && resp.Succeeded {
		s.spans.learn(resp.Responses[2])
	}
	return explained(ctx, "carry out", err)
}

// carry writes a part to the records, once: the part is gone with it. It is one
// transaction, unless the server takes less than it should.
func (s *Store) carry(ctx context.Context, h *hold, p part) error {
	key, most := s.keys.part(h.ID, p.n), len(p.ops)
	for rest := p.ops; len(rest) > 0; {
		some := rest[:min(most, len(rest))]
		then := s.changes(make([]clientv3.Op, 0, len(some)+extraOps), some)
		if len(some) == len(rest) {
			then = append(then, clientv3.OpDelete(key))
		}
		// Watches know by the last key what the others are.
		then = append(then, clientv3.OpPut(s.keys.hold, h.text()))
		resp, err := s.patientTxn(ctx, []clientv3.Cmp{exists(key), made(s.keys.hold, h.made)}, then...)
		err = explained(ctx, "carry out", err)
		switch {
		case errors.Is(err, store.ErrTooLarge) && len(some) > 1:
			most = (len(some) + 1) / 2
		case err != nil:
			return err
		case !resp.Succeeded:
			return nil // somebody else did
		default:
			rest = rest[len(some):]
		}
	}
	return nil
}

// made guards that a key is still the one that was made then.
func made(key string, rev int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(key), "=", rev)
}

// putAside ends a staged batch that is not decided, and does nothing to one that
// is.
func (s *Store) putAside(ctx context.Context, h *hold) error {
	guard, then := at(s.keys.hold, store.Rev(h.moved)), []clientv3.Op{clientv3.OpDelete(s.keys.parts(h.ID), clientv3.WithPrefix())}
	if h.moved == 0 { // it was never taken, as far as is known
		guard = absent(s.keys.hold)
	} else {
		then = append(then, clientv3.OpDelete(s.keys.hold))
	}
	_, err := s.patientTxn(ctx, []clientv3.Cmp{guard}, then...)
	return explained(ctx, "put a staged batch aside", err)
}

// sweep removes parts that somebody left behind. Whoever stages a batch just now
// finds out and does it again.
func (s *Store) sweep(ctx context.Context) error {
	resp, err := s.patientGet(ctx, s.keys.staging, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return explain(ctx, "look for parts left behind", err)
	}
	last := ""
	for _, kv := range resp.Kvs {
		id, _, _ := strings.Cut(string(kv.Key[len(s.keys.staging):]), "/")
		if id == last || len(id) != idSize {
			continue
		}
		last = id
		if err := s.putAside(ctx, &hold{staged: staged{ID: id}}); err != nil {
			return err
		}
	}
	return nil
}
