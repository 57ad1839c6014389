package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/auth/enroll"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/router/home"
)

// inner is the router that runs inside the controller, if one is to. To the rest
// of the program it is one like any other: it connects over the network and
// shows its certificate.
type inner struct {
	listener net.Listener
	running  atomic.Pointer[home.Running]
}

// innerDir is where in the data directory the router's files are.
const innerDir = "router"

// innerTime is how long it may take to make the router known.
const innerTime = 30 * time.Second

// startInner starts the router inside the controller.
func (s *Server) startInner(desk *enroll.Desk) error {
	if s.inner.listener == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), innerTime)
	defer cancel()
	set := s.innerSettings()
	if err := s.equip(ctx, desk, set); err != nil {
		return fmt.Errorf("the router inside the controller: %w", err)
	}
	b := build.Read()
	place, err := home.Open(s.dir.sub(innerDir), home.Options{
		Now: time.Now, Log: s.log.With("part", "router"), Version: b.Version, Revision: b.Revision, Built: b.Date,
		Inside: &home.Inside{
			Settings: set, Listener: s.inner.listener, Controllers: []string{"tls:" + s.fromHere()}, ServerName: "localhost",
		},
	})
	if err != nil {
		return fmt.Errorf("the router inside the controller: %w", err)
	}
	s.onClose(place.Close)
	running, err := place.Start()
	if err != nil {
		return fmt.Errorf("the router inside the controller: %w", err)
	}
	s.inner.running.Store(running)
	s.figures.WatchRouter(running.Figures)
	go func() {
		if err := running.Err(); err != nil {
			s.fail(fmt.Errorf("the router inside the controller: %w", err))
		}
	}()
	s.onClose(s.stopInner)
	s.log.Info("a router runs inside the controller", "listen", running.Listening.String(), "advertise", set.Advertise)
	return nil
}

// Router is where the router inside the controller listens; nil if there is
// none.
func (s *Server) Router() net.Addr {
	if running := s.inner.running.Load(); running != nil {
		return running.Listening
	}
	return nil
}

// routerFails says why the router inside the controller carries nothing.
func (s *Server) routerFails() string {
	if running := s.inner.running.Load(); running == nil || !running.Router.Status().Connected {
		return "the router inside the controller is not connected"
	}
	return ""
}

// stopInner stops the router, before what it connects to. Its circuits end
// with the process: there is nothing to wait for.
func (s *Server) stopInner() error {
	if running := s.inner.running.Swap(nil); running != nil {
		return running.Stop(context.Background())
	}
	return nil
}

// innerSettings are those of the router inside the controller.
func (s *Server) innerSettings() home.Settings {
	at := s.inner.listener.Addr().(*net.TCPAddr)
	set := home.DefaultSettings()
	set.Listen, set.Metrics, set.Advertise = at.String(), home.MetricsOff, []string{s.cfg.RouterAdvertise}
	if host, _, err := net.SplitHostPort(s.cfg.Advertise); s.cfg.RouterAdvertise == "" {
		set.Advertise = []string{at.IP.String()}
		if err == nil && at.IP.IsUnspecified() {
			set.Advertise = []string{net.JoinHostPort(host, strconv.Itoa(at.Port))}
		}
	}
	set.Fill()
	return set
}

// fromHere is where the controller listens for routers, as seen from its own
// machine. Its certificate is always for localhost too.
func (s *Server) fromHere() string {
	l := s.listener
	if s.control != nil {
		l = s.control
	}
	at := *l.Addr().(*net.TCPAddr)
	if at.IP.IsUnspecified() {
		at.IP = net.IPv4(127, 0, 0, 1)
	}
	return at.String()
}

// equip makes sure that the router has a record and certificates that go with
// it, for the names that it is to have. We are who issues them: whatever is
// missing, or damaged, is made anew.
func (s *Server) equip(ctx context.Context, desk *enroll.Desk, set home.Settings) error {
	dir := s.dir.sub(innerDir)
	who, err := home.Look(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.log.Warn("the router inside the controller gets a new key", "reason", err)
	}
	known, ok := model.Routers.Get(s.state.Snapshot(), who.ID)
	if ok && slices.Contains(who.Fingerprints, known.Fingerprint) && who.Serves(set.Hosts()) {
		return s.atHome(ctx, who.ID)
	}
	id, err := s.knowRouter(ctx, who.ID, set.Hosts())
	if err != nil {
		return err
	}
	key, csr, err := set.Request(id)
	if err != nil {
		return err
	}
	certs, err := desk.Equip(ctx, state.Program("router"), id, []byte(csr), []byte(csr))
	if err != nil {
		return err
	}
	text, err := pki.EncodeKey(key)
	if err != nil {
		return err
	}
	return home.Settle(dir, set, home.Identity{
		ID: id, Controllers: []string{"tls:" + s.RouterAddress()}, Key: string(text),
		Cert: string(pki.EncodeCertificates(certs.Client...)), ServerCert: string(pki.EncodeCertificates(certs.Server...)),
		CA: string(pki.EncodeCertificates(desk.Bundle()...)),
	})
}

// atHome notes that a router runs inside this controller, so that it is found
// again when its files are lost.
func (s *Server) atHome(ctx context.Context, id string) error {
	snap := s.state.Snapshot()
	if e, ok := model.EdgeRouters.Get(snap, id); !ok || e.Home == s.RouterAddress() && !model.HasOldDoors(snap) {
		return nil
	}
	return s.state.Update(ctx, state.Program("router"), func(tx *state.Tx) error {
		if err := model.MarkOldDoors(tx); err != nil {
			return err
		}
		return model.EdgeRouters.Edit(tx, id, func(e *model.EdgeRouter) error {
			e.Home = s.RouterAddress()
			return nil
		})
	})
}

// lostRouter finds the record of the router that ran inside this controller
// before its files were lost, as they are after a restore. Of a cluster's
// controllers each may have one, which its address tells; where there is one
// controller there is one router. One that an earlier version made is told by its
// name and by what it was allowed.
func (s *Server) lostRouter(tx *state.Tx, hosts []string) (id string) {
	alone := !s.cfg.Shared()
	var found *model.EdgeRouter
	for e := range model.EdgeRouters.All(tx) {
		earlier := e.Home == "" && model.Inside(model.EdgeRouters.Def, e.Name) && len(e.AllowedNames) > 0 && len(merge(e.AllowedNames, hosts)) == len(e.AllowedNames)
		if e.Home != s.RouterAddress() && !(alone && (e.Home != "" || earlier)) {
			continue
		}
		if found == nil || e.CreatedAt.Before(found.CreatedAt) {
			found = e // later ones are in its place for want of its files
		}
	}
	if found == nil {
		return ""
	}
	return found.ID
}

// knowRouter makes a record for the router, unless there is one, and allows it
// the names of this controller: they are on one machine.
func (s *Server) knowRouter(ctx context.Context, id string, hosts []string) (string, error) {
	var made []string
	lost := id
	err := s.state.Update(ctx, state.Program("router"), func(tx *state.Tx) error {
		made, id = nil, lost
		if _, ok := model.EdgeRouters.Get(tx, id); !ok {
			id = s.lostRouter(tx, hosts)
		}
		if id != "" {
			return model.EdgeRouters.Edit(tx, id, func(e *model.EdgeRouter) error {
				e.AllowedNames, e.Home = merge(e.AllowedNames, hosts), s.RouterAddress()
				return nil
			})
		}
		e := model.EdgeRouters.New()
		e.Name, e.AllowedNames, e.Home = freeName(tx), merge(nil, hosts), s.RouterAddress()
		if err := model.EdgeRouters.Create(tx, e); err != nil {
			return err
		}
		id, made = e.ID, append(made, "edge router "+e.Name)
		return openDoors(tx, &made)
	})
	if err == nil && id != lost && len(made) == 0 {
		s.log.Warn("the files of the router inside the controller are gone; it gets a new key and goes on under its record", "router", id)
	}
	if err == nil && len(made) > 0 {
		s.log.Info("the network has a router of its own now, and what it takes to use it", "made", made)
	}
	return id, err
}

// merge adds names to those that there are.
func merge(is, more []string) []string {
	all := slices.Clone(is)
	for _, name := range more {
		if name = model.HostName(name); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// freeName is what the router is called.
func freeName(tx *state.Tx) string {
	for n := 1; ; n++ {
		name := model.InsideRouter
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if _, taken := model.EdgeRouters.Find(tx, "name", name); !taken {
			return name
		}
	}
}

// openDoors lets everybody, and every service, use every router in a network
// that has said nothing about it.
func openDoors(tx *state.Tx, made *[]string) error {
	everything := []string{"#all"}
	if none(model.EdgeRouterPolicies.All(tx)) {
		p := model.EdgeRouterPolicies.New()
		p.Name, p.Semantic, p.IdentityRoles, p.EdgeRouterRoles, p.Inside = model.InsideRouterPolicy, model.AnyOf, everything, everything, true
		if err := model.EdgeRouterPolicies.Create(tx, p); err != nil {
			return err
		}
		*made = append(*made, "edge router policy "+p.Name)
	}
	if !none(model.ServiceEdgeRouterPolicies.All(tx)) {
		return nil
	}
	p := model.ServiceEdgeRouterPolicies.New()
	p.Name, p.Semantic, p.ServiceRoles, p.EdgeRouterRoles, p.Inside = model.InsideServicePolicy, model.AnyOf, everything, everything, true
	*made = append(*made, "service edge router policy "+p.Name)
	return model.ServiceEdgeRouterPolicies.Create(tx, p)
}

// none reports whether there is nothing of a kind.
func none[T any](all iter.Seq[T]) bool {
	for range all {
		return false
	}
	return true
}
