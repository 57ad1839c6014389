package fabric

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/wire/message"
	"netkeep.internal/test/scripted"
	"netkeep.internal/test/servertest"
)

// TestRestartUnderLoad restarts a controller while circuits are dialled, a
// hundred a second: dialling goes on, and what was open before is still the
// controller's to end.
func TestRestartUnderLoad(t *testing.T) {
	dir := t.TempDir()
	first, err := servertest.Open(dir)
	must(t, err)
	m := addMesh(t, first, "ab")
	m.hostOn(t, m.routers["b"], servertest.Unique("t"))
	load := dialAll(t, m)
	load.until(100)

	must(t, first.Close())
	second, err := servertest.Open(dir, func(c *config.Config) { c.Listen = first.Listening().String() })
	must(t, err)
	t.Cleanup(func() { must(t, second.Close()) })
	for name := range m.records {
		was := m.routers[name]
		<-was.Done()
		m.records[name].Server = second
		m.connect(name, func(o *scripted.Options) {
			if o.Circuits, o.Links = was.Has(); name == "b" {
				o.Links[m.id("ab")] = message.Link{ID: m.id("ab"), Destination: m.records["a"].ID}
			}
		})
		load.through(m.routers["a"])
	}
	before := load.made.Load()
	load.until(before + 100)
	load.stop()
	t.Logf("%d circuits were made, %d dials failed", load.made.Load(), load.failed.Load())

	second.Admin(t).Delete(management + "service-policies/" + m.dialPolicy).Want(200)
	for name, r := range m.routers {
		await(t, r, name+" carries nothing any more", func(k scripted.Known) bool { return len(k.Circuits) == 0 })
	}
}

// dials is somebody who dials again and again.
type dials struct {
	t            *testing.T
	at           atomic.Pointer[scripted.Router]
	made, failed atomic.Int64
	stop         func()
}

// dialAll dials a hundred times a second until it is stopped.
func dialAll(t *testing.T, m *mesh) *dials {
	t.Helper()
	d := &dials{t: t}
	d.through(m.routers["a"])
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			all.Go(func() {
				within, done := context.WithTimeout(ctx, soon)
				defer done()
				if _, _, err := d.at.Load().Dial(within, m.dialing, m.dialer.Token, nil); err != nil {
					d.failed.Add(1)
				} else {
					d.made.Add(1)
				}
			})
		}
	})
	d.stop = sync.OnceFunc(func() { cancel(); all.Wait() })
	t.Cleanup(d.stop)
	return d
}

func (d *dials) through(r *scripted.Router) { d.at.Store(r) }

// until waits until so many circuits were made.
func (d *dials) until(made int64) {
	d.t.Helper()
	servertest.Eventually(d.t, 4*soon, "circuits are made", func() bool { return d.made.Load() >= made })
}
