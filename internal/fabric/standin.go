package fabric

import (
	"context"
	"crypto/tls"
	gosync "sync"

	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/fabric/roster"
)

// StandIn answers routers under the id of another controller, which is gone, until
// it is stopped. They hold on to the id: what their clients ask for goes there, and
// so does all that becomes of the circuits that were made under it. What is noted of
// them hangs on the lease.
func (f *Fabric) StandIn(id string, lease store.Lease) roster.StandIn {
	opt := f.opt
	opt.ID, opt.Beside, opt.Lease = id, f, func() store.Lease { return lease }
	second := New(opt)
	ctx, cancel := context.WithCancel(context.Background())
	var runs gosync.WaitGroup
	runs.Go(func() { second.Run(ctx) })
	f.second.Store(second)
	return roster.StandIn{
		Routers: func() int { return len(second.All()) },
		Stop: func() {
			f.second.Store(nil)
			second.Routers.Close()
			cancel()
			runs.Wait()
		},
	}
}

// TakeAside makes a connection to the reserve address that of a router, if this
// controller answers there at present, or ends it.
func (f *Fabric) TakeAside(conn *tls.Conn) {
	if second := f.second.Load(); second != nil {
		second.Take(conn)
		return
	}
	_ = conn.Close()
}

// both are the fabric and the one under the id of another controller, if there is
// one.
func (f *Fabric) both() []*Fabric {
	if second := f.second.Load(); second != nil {
		return []*Fabric{f, second}
	}
	return []*Fabric{f}
}

// Drop is that of [seam.Routers].
func (f *Fabric) Drop(routerID, except string) {
	for _, f := range f.both() {
		f.Routers.Drop(routerID, except)
	}
}

// Close ends all connections and takes no more.
func (f *Fabric) Close() {
	for _, f := range f.both() {
		f.Routers.Close()
	}
}
