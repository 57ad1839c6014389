package etcdstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"

	"netkeep.internal/internal/data/store"
)

var (
	// ErrCopied says that the member of a directory runs already, with another one.
	ErrCopied = errors.New("the data is that of a member that runs already")
	// ErrOutdated says that a member has forgotten what it confirmed to others: its
	// directory was put back, or the others have heard of one with a copy of it.
	ErrOutdated = fmt.Errorf("%w: the data is older than what the others had from this member", store.ErrFailed)
)

// refuseCopy refuses a directory whose member runs elsewhere. Two that pass for one
// confirm to the others what only one of them has, and take the store apart: the
// second must not say a word, so this is asked before it starts.
func (p *Peers) refuseCopy(ctx context.Context, dir string, log *zap.Logger) error {
	all, err := membersIn(dir)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(m *membership.Member) bool { return m.Name == p.Name })
	if i < 0 {
		return nil // it has yet to become one
	}
	rt, err := rafthttp.NewRoundTripper(p.tls(), peerDialTime)
	if err != nil {
		return err
	}
	own, others := all[i], slices.Concat(all[:i], all[i+1:])
	known := slices.Clone(own.PeerURLs)
	for _, at := range urls(others) {
		// The others know where it went since, though not all of them have heard of it.
		if found, err := etcdserver.GetClusterFromRemotePeers(log, []string{at}, rt); err == nil && found.Member(own.ID) != nil {
			known = append(known, found.Member(own.ID).PeerURLs...)
		}
	}
	known = append(known, PeerURL(p.Advertise))
	slices.Sort(known)
	for _, at := range slices.Compact(known) {
		if answers(ctx, rt, at) && !slices.Contains(urls(others), at) {
			return fmt.Errorf("%w, at %s", ErrCopied, at)
		}
	}
	return nil
}

func urls(members []*membership.Member) (all []string) {
	for _, m := range members {
		all = append(all, m.PeerURLs...)
	}
	return all
}

// answers reports whether a member of the cluster is at a URL.
func answers(ctx context.Context, rt http.RoundTripper, at string) bool {
	ctx, cancel := context.WithTimeout(ctx, peerDialTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/members", nil)
	if err != nil {
		return false
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}

// membersIn are the members of the cluster that a directory is of, as it knows
// them.
func membersIn(dir string) (all []*membership.Member, err error) {
	file := filepath.Join(dir, "member", "snap", "db")
	if !fileutil.Exist(file) {
		return nil, nil
	}
	db, err := bolt.Open(file, 0o400, &bolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return nil, fmt.Errorf("read the members: %w", err)
	}
	err = db.View(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(schema.Members.Name())
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(_, text []byte) error {
			m := &membership.Member{}
			all = append(all, m)
			return json.Unmarshal(text, m)
		})
	})
	return all, errors.Join(err, db.Close())
}
