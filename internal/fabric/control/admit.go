package control

import (
	"cmp"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// helloWait is how long somebody who connects has to say who it is.
const helloWait = 5 * time.Second

var (
	errShutOut   = errors.New("it is disabled, deleted or enrolled anew")
	errReplaced  = errors.New("it has connected again")
	errFormer    = errors.New("it is for a connection that the router may not use any more")
	errStopping  = errors.New("the controller is stopping")
	errSuspended = errors.New("the controller has lost its store, and others answer for it")
	errUnknown   = errors.New("its certificate is not that of an enrolled and enabled router")
	errDisabled  = errors.New("the router is disabled: netkeep enable edge-router lets it in again")
	errDeleted   = errors.New("the controller does not know this router any more: create it again if it was deleted, " +
		"or else use netkeep reenroll edge-router, and enroll it with the new token and --force")
)

// publicReason is what a stranger is told.
func publicReason(err error) string {
	for _, known := range []error{errUnknown, errDisabled, errDeleted, errStopping, errSuspended, errGroup, errVersion, errMisbehaves, errRestless} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "the hello cannot be read"
}

// admit finds out who connects and gives it a channel, which serve serves.
func (rs *Routers) admit(conn *tls.Conn, deadline time.Time) (serve func(), err error) {
	record, fingerprint, err := rs.identify(conn, deadline)
	known := err == nil || errors.Is(err, errDeleted) || errors.Is(err, errDisabled)
	if !known {
		return nil, err
	}
	// Also of one that is turned away: a socket that is closed with something
	// unread may lose the answer that says why.
	hello, helloErr := channel.ReadHello(conn, deadline)
	if err = cmp.Or(err, helloErr); err != nil {
		return nil, err
	}
	if rs.shutOut(record.ID) {
		return nil, errMisbehaves
	}
	if hello.ID != record.ID {
		return nil, fmt.Errorf("%w: it says that it is %.40q", errUnknown, hello.ID)
	}
	if !hello.First() {
		return rs.joinGroup(conn, deadline, hello, fingerprint)
	}
	if rs.conduct.arrivals.Take(record.ID) != 0 {
		return nil, errRestless
	}
	r, err := rs.newRouter(record, hello, fingerprint)
	if err != nil {
		return nil, err
	}
	r.from, r.to = conn.RemoteAddr().String(), conn.LocalAddr().String()
	if err := rs.awaitResume(); err != nil {
		return nil, err
	}
	if err := hello.Welcome(conn, deadline, rs.welcome(r, hello)); err != nil {
		return nil, err
	}
	if err := rs.enter(r, conn.RemoteAddr().String(), false); err != nil && !errors.Is(err, errFormer) {
		return nil, err
	}
	return func() { r.ch.Serve(conn) }, nil
}

// enter makes a router the one with its id, and has everybody told who asked for it.
// used says that it has shown that it uses the connection.
func (rs *Routers) enter(r *Router, remote string, used bool) error {
	err := rs.register(r, used)
	if err != nil && !errors.Is(err, errFormer) {
		return err
	}
	// Between the look at its record and now it may have been shut out, and
	// whoever did that found nobody to drop.
	if now, ok := model.Routers.Get(rs.opt.State.Snapshot(), r.ID); !ok || !admissible(now, r.Fingerprint()) {
		r.ch.Close(errShutOut)
	}
	if err != nil {
		return err
	}
	r.Say(slog.LevelInfo, "router connected", "name", r.Name, "address", remote, "version", r.Presence().Version.Version)
	r.note(audit.RouterConnected, remote, "")
	for _, fn := range rs.joined {
		fn(r)
	}
	return nil
}

// continues reports whether a router connects for the connection that it has, or for
// none. One of the first generation dials for a connection that was lost until that
// works, also when it has given it up since and has another. Then it neither reads
// from it nor says anything, and in the place of the other it would cut the router off.
// The name that it knows its connection by may be the one of before, if it did not hear
// the welcome.
func (r *Router) continues(old *Router) bool {
	return r.Grouped || r.former == "" || r.former == old.ch.ID || r.former == old.former
}

// shows takes note that the router uses the connection, and reports whether it may. It
// runs where that is read.
func (r *Router) shows() bool {
	if r.entered.Load() {
		return true
	}
	if err := r.all.enter(r, r.Remote(), true); err != nil {
		r.ch.Close(err)
		return false
	}
	if err := r.ch.Err(); err != nil {
		r.all.forget(r, err) // it ended before there was somebody to forget
	}
	return true
}

// identify returns the router whose certificate the connection has proved to
// hold: the leaf's, and no other's.
func (rs *Routers) identify(conn *tls.Conn, deadline time.Time) (*model.Router, string, error) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, "", fmt.Errorf("handshake: %w", err)
	}
	now := rs.opt.Now()
	leaf, err := pki.NewRoots(rs.opt.Bundle()).VerifyLeaf(conn.ConnectionState().PeerCertificates, pki.VerifyOptions{Now: now})
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", errUnknown, err)
	}
	if leaf.Expired(now) || leaf.NotYetValid(now) {
		return nil, "", fmt.Errorf("%w: it has run out or is not valid yet; enroll the router again", errUnknown)
	}
	fingerprint := pki.Fingerprint(leaf.Certificate())
	r, ok := model.Routers.Find(rs.opt.State.Snapshot(), "fingerprint", fingerprint)
	if !ok { // unless it enrolled at another controller a moment ago
		snap, err := rs.opt.State.Current(ctx)
		if err != nil {
			return nil, "", fmt.Errorf("who it is cannot be looked up now: %w", err)
		}
		r, ok = model.Routers.Find(snap, "fingerprint", fingerprint)
	}
	switch {
	case !ok || !r.IsVerified:
		return nil, "", errDeleted
	case !admissible(r, fingerprint):
		return nil, "", errDisabled
	}
	return r, fingerprint, nil
}

// admissible reports whether a router may connect with a certificate.
func admissible(r *model.Router, fingerprint string) bool {
	return r.IsVerified && !r.Disabled && subtle.ConstantTimeCompare([]byte(r.Fingerprint), []byte(fingerprint)) == 1
}

// newRouter makes a router of what its hello says.
func (rs *Routers) newRouter(record *model.Router, hello *channel.Hello, fingerprint string) (*Router, error) {
	version, err := parseVersion(hello.Headers.Text(message.HeaderVersion))
	if err != nil {
		return nil, err
	}
	speaks := version.Version
	listeners := hello.Headers[message.HeaderOldListeners]
	if capable(hello.Headers[message.HeaderCapabilities], message.NewHeaders) {
		listeners = hello.Headers[message.HeaderListeners]
	} else if hello.Grouped() {
		listeners = nil // there the header is the group's secret
	}
	reached, err := message.Unmarshal[message.Listeners](listeners)
	if err != nil {
		return nil, err
	}
	r := &Router{
		ID: record.ID, Name: record.Name, Edge: record.IsEdge, Follows: hello.Headers.Bool(message.HeaderAuthorities), Listeners: reached.Listeners, Grouped: hello.Grouped(), Lingers: lingers(speaks), early: early(speaks) && !ours(version),
		all: rs, fingerprint: fingerprint, secret: hello.Secret(), seats: newSeats(), writes: make(chan struct{}, maxWrites), carrying: map[string]struct{}{},
		speaks: speaks, former: hello.ConnectionID(),
	}
	r.work.init()
	r.paces.init()
	now := kind.MomentOf(rs.opt.Now())
	here := &model.Presence{
		Meta:   kind.Meta{ID: record.ID, CreatedAt: now, UpdatedAt: now},
		Online: true, Version: plainVersion(version), Sync: model.SyncNew, ControllerID: rs.opt.ID,
	}
	for _, l := range reached.Listeners {
		here.Links = append(here.Links, model.RouterAddress{Address: l.Address, Protocol: l.Protocol})
	}
	r.presence.Store(here)
	if r.Grouped && len(r.secret) == 0 {
		r.secret = channel.NewSecret()
	}
	id := hello.ConnectionID()
	if !r.Grouped || id == "" {
		id = channel.NewID()
	}
	r.ch = channel.New(id, channel.Options{
		Handle: r.hear, Unfit: r.unfit, Sockets: maxSockets, Bounds: wire.Bounds{Headers: channel.MaxBody, Body: channel.MaxBody}, Now: rs.opt.Now, Closed: func(_ *channel.Channel, reason error) { rs.forget(r, reason) },
		Echoed: func(time.Duration) { r.shows() },
	})
	return r, nil
}

var errGroup = errors.New("the connection belongs to no group that is known here")

// joinGroup adds a further socket to a router's channel.
func (rs *Routers) joinGroup(conn *tls.Conn, deadline time.Time, hello *channel.Hello, fingerprint string) (serve func(), err error) {
	r, ok := rs.Get(hello.ID)
	if !ok || !r.Grouped || r.ch.ID != hello.ConnectionID() || r.Fingerprint() != fingerprint ||
		subtle.ConstantTimeCompare(r.secret, hello.Secret()) != 1 || r.ch.Sockets() >= maxSockets {
		return nil, errGroup
	}
	if err := hello.Welcome(conn, deadline, rs.welcome(r, hello)); err != nil {
		return nil, err
	}
	return func() { r.ch.Serve(conn) }, nil
}

// maxSockets is how many sockets a router may have.
const maxSockets = 4

// welcome is what a router is told of us.
func (rs *Routers) welcome(r *Router, hello *channel.Hello) wire.Headers {
	b := rs.opt.Build
	h := wire.Headers{}
	h.SetText(message.HeaderConnectionID, r.ch.ID)
	h.SetText(message.HeaderVersion, strings.Join([]string{b.Version, b.Revision, b.BuildDate, b.OS, b.Arch}, "|"))
	h.SetText(message.HeaderListenerID, rs.opt.ID)
	if hello.Headers.Bool(message.HeaderAuthorities) { // it is one of ours
		h.SetBool(message.HeaderFinds, true)
	}
	// Each generation looks for it in a place of its own.
	h[message.HeaderOldCapabilities] = rs.can(r)
	h[message.HeaderCapabilities] = rs.can(r)
	if r.Grouped {
		h.SetBool(message.HeaderGrouped, true)
		h[message.HeaderGroupSecret] = r.secret
		h.SetText(message.HeaderChannelType, hello.Headers.Text(message.HeaderChannelType))
	}
	return h
}

// capable reports whether a mask has a bit. It is a number with the most
// significant byte first.
func capable(mask []byte, bit uint) bool {
	at := bits.TrailingZeros(bit)
	i := len(mask) - 1 - at/8
	return i >= 0 && mask[i]&(1<<(at%8)) != 0
}

var errVersion = errors.New("its version is not five fields with bars between them")

// parseVersion reads what a router runs.
func parseVersion(text string) (model.RouterVersion, error) {
	parts := strings.Split(text, "|")
	if len(parts) != 5 || len(text) > 1000 {
		return model.RouterVersion{}, fmt.Errorf("%w: %.40q", errVersion, text)
	}
	return model.RouterVersion{Version: parts[0], Revision: parts[1], BuildDate: parts[2], OS: parts[3], Arch: parts[4]}, nil
}

// ours reports whether what a router says that it runs is of our own making.
func ours(v model.RouterVersion) bool { return strings.HasPrefix(v.Revision, message.OwnRevision) }

// plainVersion is what people are shown. Routers of our own say the release whose
// words they speak, which other routers need, and in the revision their own
// version.
func plainVersion(v model.RouterVersion) model.RouterVersion {
	if own := strings.TrimPrefix(v.Revision, message.OwnRevision); ours(v) {
		if version, revision, both := strings.Cut(own, "/"); both {
			v.Version, v.Revision = version, revision
		}
	}
	return v
}

// prompt is the first release whose routers tell clients at once that a circuit
// was dropped.
var prompt = semver.New(1, 6, 6, "", "")

// lingers reports whether a release is an earlier one. What was built by hand says
// that it is none.
func lingers(release string) bool {
	v, err := semver.NewVersion(release)
	return err == nil && v.Major() > 0 && v.LessThan(prompt)
}

// Routers of the first generation take access tokens from the one release on; from the
// other on they want more than this controller says, and nobody runs them.
var earliest, later = semver.New(1, 6, 0, "", ""), semver.New(1, 7, 0, "", "")

// early reports whether routers of a release are of the first generation and take access
// tokens, if they are told that there is a data model.
func early(release string) bool {
	v, err := semver.NewVersion(release)
	return err == nil && !v.LessThan(earliest) && v.LessThan(later) && v.Prerelease() == ""
}

// Generation is what is known by its release of a router that is connected to another
// controller: whether it lingers, and whether it is of the second generation.
func Generation(release string) (lingering, second bool) {
	v, err := semver.NewVersion(release)
	return lingers(release), err == nil && v.Major() > 1
}
