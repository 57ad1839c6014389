package etcdstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/data/store/storetest"
)

// testLogger fails the test for whatever etcd has to say, except that the
// machine is slow.
func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(complaint{t}, nil))
}

type complaint struct{ t testing.TB }

func (c complaint) Write(p []byte) (int, error) {
	for _, slow := range []string{"took too long", "request stats"} {
		if bytes.Contains(p, []byte(slow)) {
			return len(p), nil
		}
	}
	c.t.Errorf("logged: %s", p)
	return len(p), nil
}

// startTest starts a member for one test. It does not sync to disk.
func startTest(t testing.TB, log *slog.Logger, tune func(*embed.Config)) *member {
	t.Helper()
	m, err := startMember(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "data"), Logger: log}, func(c *embed.Config) {
		c.UnsafeNoFsync = true
		tune(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func asIs(*embed.Config) {}

// silent is for members that are meant to complain.
var silent = slog.New(slog.DiscardHandler)

// listening makes a member an ordinary etcd server with an address.
func listening(c *embed.Config) {
	plain := embed.NewConfig()
	c.MaxTxnOps, c.MaxRequestBytes = plain.MaxTxnOps, plain.MaxRequestBytes
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.AdvertiseClientUrls = c.ListenClientUrls
}

func (m *member) address() string { return m.etcd.Clients[0].Addr().String() }

// embedded returns empty data in a member, beneath a prefix of their own.
func embedded(m *member) func(*testing.T) storetest.Opener {
	var n atomic.Int64
	return func(*testing.T) storetest.Opener {
		prefix := fmt.Sprint(n.Add(1))
		return storetest.Opener{
			Open: func(testing.TB) store.Store {
				return m.handle(prefix, func() error { return nil })
			},
			Restore: restorer(prefix),
		}
	}
}

// byAddress is embedded over the network.
func byAddress(m *member) func(*testing.T) storetest.Opener {
	var n atomic.Int64
	return func(*testing.T) storetest.Opener {
		o := Options{Endpoints: []string{m.address()}, Prefix: fmt.Sprint(n.Add(1))}
		return storetest.Opener{
			Open: func(t testing.TB) store.Store {
				o.Logger = testLogger(t)
				s, err := Dial(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Restore: restorer(o.Prefix),
		}
	}
}

// directory returns data in a directory of their own. The member runs while
// there are handles.
func directory(t *testing.T) storetest.Opener {
	dir := filepath.Join(t.TempDir(), "data")
	var mu sync.Mutex
	var m *member
	handles := 0
	return storetest.Opener{
		Open: func(t testing.TB) store.Store {
			mu.Lock()
			defer mu.Unlock()
			if handles == 0 {
				var err error
				if m, err = startMember(t.Context(), Options{Dir: dir, Logger: testLogger(t)}, asIs); err != nil {
					t.Fatal(err)
				}
			}
			handles++
			return m.handle("", func() error {
				mu.Lock()
				defer mu.Unlock()
				if handles--; handles == 0 {
					return m.close()
				}
				return nil
			})
		},
		Restore: restorer(""),
	}
}

// restorer opens a new directory made from a snapshot.
func restorer(prefix string) func(testing.TB, io.Reader) store.Store {
	return func(t testing.TB, snapshot io.Reader) store.Store {
		o := Options{Dir: filepath.Join(t.TempDir(), "restored"), Prefix: prefix, Logger: testLogger(t)}
		if err := Restore(t.Context(), snapshot, o.Dir); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func TestContractEmbedded(t *testing.T) {
	storetest.Run(t, embedded(startTest(t, testLogger(t), asIs)))
}

func TestContractByAddress(t *testing.T) {
	storetest.Run(t, byAddress(startTest(t, testLogger(t), listening)))
}

// TestRestart closes the member itself, where the suite closes handles.
func TestRestart(t *testing.T) {
	storetest.Reopen(t, directory(t))
}

func TestCompareEmbedded(t *testing.T) {
	storetest.Compare(t, embedded(startTest(t, testLogger(t), asIs)))
}

// TestCloseWaits closes while a write is under way that ends, and one that
// does not.
func TestCloseWaits(t *testing.T) {
	for name, answered := range map[string]bool{"answered": true, "never answered": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(context.Background(), nil, "", memberLimits, func() error { return nil })
				ctx, done, err := s.write(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				closed := make(chan error, 1)
				go func() { closed <- s.Close() }()
				synctest.Wait()
				if _, err := s.Put(t.Context(), store.Head{}, set("k/1", 1)); !errors.Is(err, store.ErrClosed) {
					t.Errorf("Put while closing: %v", err)
				}
				if len(closed) > 0 || ctx.Err() != nil {
					t.Errorf("Close did not wait")
				}
				if !answered {
					<-ctx.Done()
					err := explain(ctx, "put", ctx.Err())
					if errors.Is(err, store.ErrClosed) || !errors.Is(err, errClosing) {
						t.Errorf("a write without an answer failed with %v", err)
					}
				}
				done()
				if err := <-closed; err != nil {
					t.Error(err)
				}
				if took := time.Since(start); answered != (took == 0) || took > closeGrace {
					t.Errorf("Close took %v", took)
				}
			})
		})
	}
}
