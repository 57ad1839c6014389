package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"netkeep.internal/internal/data/store"
)

// clusterLimits stays below etcd's defaults of 128 operations and 1.5 MiB:
// guards repeat keys, and the batch has extraOps and a head.
var clusterLimits = store.Limits{Ops: 120, Bytes: 1280 << 10}

const (
	// signInTimeout bounds the one step of Dial that does not heed ctx.
	signInTimeout = 3 * time.Second
	// Pings find a connection that is dead, which matters to a quiet watch.
	pingEvery, pingTimeout = 10 * time.Second, 5 * time.Second
)

// sendMargin is what a request may weigh beyond its batch. The server judges
// it, the client must only let it pass.
const sendMargin = 2 << 20

// Dial returns a store on an etcd cluster, when the cluster has answered once.
// The cluster's operators look after its space: Compact forgets history, for
// all who share the cluster, but does not defragment.
func Dial(ctx context.Context, o Options) (*Store, error) {
	if len(o.Endpoints) == 0 {
		return nil, errors.New("no etcd endpoints given")
	}
	quick := store.Limits{
		Ops:   cmp.Or(o.Limits.Ops, clusterLimits.Ops),
		Bytes: cmp.Or(o.Limits.Bytes, clusterLimits.Bytes),
	}
	alive, fail := context.WithCancelCause(context.Background())
	log := &bridge{log: o.logger(), fail: fail}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            o.Endpoints,
		TLS:                  o.TLS,
		Username:             o.Username,
		Password:             o.Password,
		DialTimeout:          signInTimeout,
		DialKeepAliveTime:    pingEvery,
		DialKeepAliveTimeout: pingTimeout,
		MaxCallSendMsgSize:   quick.Bytes + sendMargin,
		Logger:               log.logger(),
	})
	if err != nil {
		return nil, fmt.Errorf("sign in: %w", log.because(err))
	}
	s := newStore(alive, client, o.Prefix, quick, func() error {
		log.closing.Store(true)
		return client.Close()
	})
	if _, _, err := s.Get(ctx, "-"); err != nil {
		return nil, errors.Join(log.because(err), s.Close())
	}
	return s, nil
}

// Refused reports whether an error of Dial says that the cluster was reached and
// does not let us in. To try again is of no use.
func Refused(err error) bool {
	for _, refusal := range []error{rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrPermissionDenied, rpctypes.ErrRoleEmpty} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
