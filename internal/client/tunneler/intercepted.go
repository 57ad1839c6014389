package tunneler

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strconv"

	"netkeep.internal/internal/client/intercept"
	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/tun"
)

// maxPending is how many connections may wait for one service: the device has
// places for some more, and others want to be served meanwhile.
const maxPending = 256

// attempt is something that a program wants to reach.
type attempt struct {
	protocol string
	from, to netip.AddrPort
	name     string // that it asked for, if it did
	rule     *intercept.Rule
	release  func()
}

// find says which service an address is for; nil if it is for none. The name
// that has the address keeps it until release is called.
func (i *interceptor) find(protocol string, from, to netip.AddrPort) *attempt {
	a := &attempt{protocol: protocol, from: from, to: to, release: func() {}}
	table := i.table.Load()
	if name, release, ok := i.pool.Hold(to.Addr()); ok {
		a.name, a.release, a.rule = name, release, table.ByName(protocol, name, to.Port())
	} else {
		a.rule = table.ByAddr(protocol, to)
	}
	if a.rule == nil || !a.rule.Admits(from.Addr()) {
		a.release()
		return nil
	}
	return a
}

// dial connects to the service that a program wants.
func (i *interceptor) dial(ctx context.Context, a *attempt) (*sdk.Conn, error) {
	w := wayOf(a.rule)
	said := map[string]string{
		"dst_protocol": a.protocol, "dst_ip": a.to.Addr().String(), "dst_port": strconv.Itoa(int(a.to.Port())),
		"src_protocol": a.protocol, "src_ip": a.from.Addr().String(), "src_port": strconv.Itoa(int(a.from.Port())),
	}
	if a.name != "" {
		said["dst_hostname"] = a.name
	}
	if err := w.asked.wait(ctx); err != nil {
		return nil, err
	}
	defer w.asked.give()
	conn, err := w.how.dial(ctx, w.client, a.rule.Service, said)
	if err == nil {
		w.problem.Store(nil)
	}
	return conn, err
}

// connect leads one connection of a program to the service that has the address.
// The program is connected when the service is, and not before.
func (i *interceptor) connect(w *tun.Wish) {
	if !i.guests.enter() {
		w.Refuse()
		return
	}
	defer i.guests.exit()
	a := i.find(intercept.TCP, w.From, w.To)
	if a == nil {
		w.Refuse()
		i.log.Debug("a connection was refused: no service has the address", "from", w.From.String(), "to", w.To.String())
		return
	}
	defer a.release()
	if !i.free.take() {
		w.Refuse()
		i.complain("a connection was refused: as many as may be are open", a.rule.Service, nil)
		return
	}
	defer i.free.give()
	pending := &wayOf(a.rule).pending
	if pending.Add(1) > maxPending {
		pending.Add(-1)
		w.Drop() // the program asks again
		i.complain("a connection has to wait: too many wait for the service already", a.rule.Service, nil)
		return
	}
	remote, err := i.dial(i.t.life, a)
	pending.Add(-1)
	if errors.Is(err, sdk.ErrBusy) {
		w.Drop()
		i.failed("a connection has to wait", a, err)
		return
	}
	if err != nil {
		w.Refuse()
		i.failed("a connection was refused", a, err)
		return
	}
	local, err := w.Accept()
	if err != nil {
		_ = remote.Close()
		i.log.Debug("a program left before it was connected", "service", a.rule.Service, "from", w.From.String(), "error", err)
		return
	}
	defer i.guests.hold(a, func() { _ = local.Close() })()
	i.log.Debug("connected", "service", a.rule.Service, "from", w.From.String(), "to", w.To.String(), "name", a.name, "circuit", remote.Info().Circuit)
	i.t.join(local, i.t.count(&wayOf(a.rule).tally, remote))
}

// failed says why a service is not reached, unless everything ends.
func (i *interceptor) failed(what string, a *attempt, err error) {
	if i.t.life.Err() == nil && !errors.Is(err, context.Canceled) {
		text := err.Error()
		text = text[:min(len(text), maxText)]
		wayOf(a.rule).problem.Store(&text)
		i.complain(what, a.rule.Service, err)
	}
}

// datagrams leads the datagrams of one sender to one receiver to the service
// that has the address.
func (i *interceptor) datagrams(f *tun.Flow) bool {
	if !i.guests.enter() {
		return false
	}
	a := i.find(intercept.UDP, f.From, f.To)
	if a == nil {
		i.guests.exit()
		return false
	}
	if !i.flows.take() {
		a.release()
		i.guests.exit()
		i.complain("a datagram was dropped: as many senders as may be are remembered", a.rule.Service, nil)
		return true // it may be sent again
	}
	local, err := f.Open()
	if err != nil {
		i.flows.give()
		a.release()
		i.guests.exit()
		return true
	}
	go func() {
		defer i.guests.exit()
		defer a.release()
		defer i.flows.give()
		i.flow(f, a, local)
	}()
	return true
}

// flow joins datagrams with the service. They have no end that could be waited
// for: what carries them ends when nothing more is taken.
func (i *interceptor) flow(f *tun.Flow, a *attempt, local io.ReadWriteCloser) {
	defer local.Close()
	remote, err := i.dial(i.taking, a)
	if err != nil {
		_ = local.Close()
		if !errors.Is(err, sdk.ErrBusy) {
			f.Refuse()
		}
		i.failed("a datagram was refused", a, err)
		return
	}
	defer i.guests.hold(a, func() { _ = local.Close() })()
	joinDatagrams(i.taking, local, i.t.count(&wayOf(a.rule).tally, remote), i.t.opt.UDPIdle)
}
