package asclient

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/access"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// onList tells a router what it may use, if that is not what it knows. Routers
// ask every few seconds, so what is asked while it is being told can wait.
func (t *Tunnels) onList(r *control.Router, f *wire.Frame) {
	p := t.peer(r)
	if !p.listing.CompareAndSwap(false, true) {
		return
	}
	started := r.Go(func(ctx context.Context) {
		defer p.listing.Store(false)
		t.list(ctx, r, f)
	})
	if !started {
		p.listing.Store(false)
	}
}

// nothing is the version of the list of a router that is no client any more.
var nothing = []byte("nothing")

func (t *Tunnels) list(ctx context.Context, r *control.Router, f *wire.Frame) {
	list := &message.TunnelServices{Version: nothing}
	who, err := t.enter(ctx, r, r.Author("listTunnelServices", f))
	if _, refused := permit.AsRefusal(err); err != nil && !refused {
		r.Say(slog.LevelWarn, "a router was not told what it may use; it asks again", "error", err)
		return
	}
	if err == nil {
		// Before the services are looked at: if they change meanwhile, the router
		// is told once more.
		list.Version = t.version(who)
	}
	if bytes.Equal(list.Version, f.Body) {
		return
	}
	if err == nil {
		list.Services = t.services(r, who, t.Timely(t.State.Snapshot()))
	}
	_ = r.SendWhenReady(control.Message(message.TypeTunnelServices, list))
}

// version is another one whenever a router may use something else, or
// otherwise.
func (t *Tunnels) version(who Client) []byte {
	last := t.Changed(t.State.Snapshot(), who.Identity().ID)
	if begun := who.Session().CreatedAt.Time(); begun.After(last) {
		last = begun
	}
	return binary.BigEndian.AppendUint64(nil, uint64(last.UnixNano()))
}

// maxList is how much a router is told, in bytes: more it would not get.
const maxList = 8 << 20

// services is what a router may use, as it is to use it.
func (t *Tunnels) services(r *control.Router, who Client, snap *state.Snapshot) []message.TunnelService {
	var (
		all     []message.TunnelService
		grants  = access.ServicesWithAdmin(snap, who.Identity().ID)
		configs = access.ConfigsFor(snap, who.Identity().ID)
		wanted  = func(c *model.Config) bool { return model.WantsConfig(who.Session().ConfigTypes, c.ConfigTypeID) }
		size    = 0
	)
	for rec := range snap.Within(model.Services.Def, grants.Visible()) {
		service := rec.(*model.Service)
		one := message.TunnelService{
			ID: service.ID, Name: service.Name, Permissions: grants.Permissions(snap, service), Encryption: service.EncryptionRequired,
			Config: configs.Append(nil, service, wanted), Tags: service.Tags.Append(nil),
		}
		if size += len(one.Name) + len(one.Config) + len(one.Tags) + 100; size > maxList {
			r.Say(slog.LevelError, "a router may use more services than it can be told of; let policies give it fewer", "told", len(all))
			break
		}
		all = append(all, one)
	}
	return all
}
