package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"netkeep.internal/internal/client/join"
	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/invite"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/etcdstore"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/pki"
)

// joinsPerMinute is how often one address may ask to join.
const joinsPerMinute = 20

// errNobodyJoins is said where others cannot take part in the store.
var errNobodyJoins = errors.New("this controller keeps its store alone: start it with --cluster-listen first, so that others can join")

// invite makes a token with which one controller may join.
func (s *Server) invite(ctx context.Context) (text string, expires time.Time, err error) {
	if !s.cfg.Shared() {
		return "", expires, fault.Wrap(fault.CodeCluster, errNobodyJoins)
	}
	inv, err := invite.Make(ctx, s.store, time.Now())
	if errors.Is(err, invite.ErrMany) {
		return "", expires, fault.Wrap(fault.CodeCluster, err)
	}
	if err != nil {
		return "", expires, err
	}
	keys := s.keys.Authorities()
	token := join.Token{
		Root: rootName(keys.Root), Network: rootName(keys.Origin),
		ID: inv.ID, Secret: inv.Secret, Made: inv.Made, Expires: inv.Expires,
	}
	for _, at := range s.places() { // any of them lets it in
		if len(token.Addresses) < join.MaxAddresses {
			token.Addresses = append(token.Addresses, at.Client)
		}
	}
	if s.cfg.TLS.Cert != "" {
		token.Served = rootName(s.served.Current().Leaf)
	}
	return token.Text(), inv.Expires, nil
}

// welcoming answers controllers that want to join, and leaves all else to next.
func (s *Server) welcoming(next http.Handler) http.Handler {
	attempts := &limit.Rate[limit.Party]{PerMinute: joinsPerMinute, Now: time.Now}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != join.Path {
			next.ServeHTTP(w, r)
			return
		}
		status, out := s.welcome(r, attempts)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(out)
	})
}

// welcome has a controller join, or says why not.
func (s *Server) welcome(r *http.Request, attempts *limit.Rate[limit.Party]) (status int, out any) {
	refuse := func(status int, err error) (int, any) {
		s.log.Warn("a controller was refused that wanted to join", "from", r.RemoteAddr, "reason", err)
		s.noteJoin(audit.MemberRefused, r.RemoteAddr, "", err.Error())
		return status, join.Refusal{Reason: err.Error()}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return refuse(http.StatusBadRequest, err)
	}
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, join.Refusal{Reason: "controllers ask with POST"}
	}
	if wait := attempts.Take(limit.At(from.Addr())); wait > 0 {
		return http.StatusTooManyRequests, join.Refusal{Reason: fmt.Sprintf("too many attempts; try again in %s", wait.Round(time.Second))}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, join.MaxRequest))
	var req join.Request
	if err != nil || json.Unmarshal(body, &req) != nil {
		return refuse(http.StatusBadRequest, errors.New("the request cannot be read: use the same version of netkeep"))
	}
	if err := s.fits(r.Context(), req); err != nil {
		return refuse(http.StatusConflict, err)
	}
	answer, err := s.admit(r.Context(), req)
	if err != nil {
		return refuse(http.StatusConflict, err)
	}
	s.noteJoin(audit.MemberJoined, r.RemoteAddr, answer.Controller, "")
	s.log.Info("a controller has joined", "id", answer.Controller, "peer", req.Peer, "from", r.RemoteAddr, "version", req.Version)
	return http.StatusOK, answer
}

// noteJoin has the audit log tell of a controller that wanted to join.
func (s *Server) noteJoin(event *audit.Event, address, id, reason string) {
	by := state.Nobody
	by.Source, by.Operation = address, "join"
	s.recorder.Note(audit.Fact{Event: event, By: by, Target: audit.Target{Kind: model.Controllers.Def.Name, ID: id, Name: id}, Reason: reason})
}

// fits refuses a controller that could not work with this one, before it costs
// it its token.
func (s *Server) fits(ctx context.Context, req join.Request) error {
	now, err := format.Of(ctx, s.store)
	if err != nil {
		return err
	}
	switch {
	case req.Protocol != join.Protocol:
		return fmt.Errorf("it joins in the form %d, and this controller knows %d: use the same version of netkeep, %s", req.Protocol, join.Protocol, build.Version)
	case now > req.Format || now < cmp.Or(req.Oldest, req.Format):
		return fmt.Errorf("its version %s keeps records in the format %d, and this network, of version %s, in %d: use the same version", req.Version, req.Format, build.Version, now)
	case !s.cfg.Shared():
		return errNobodyJoins
	case req.Peer == "" && s.cfg.Cluster.Listen != "":
		return errors.New("the controllers of this network keep the store themselves: start it with --cluster-listen, and without --store-endpoints")
	case req.Peer != "" && s.cfg.Cluster.Listen == "":
		return errors.New("the controllers of this network have their store elsewhere: start it with the --store-endpoints and the --store-prefix that they have, and without --cluster-listen")
	}
	if host, port, err := net.SplitHostPort(req.Peer); req.Peer != "" && (err != nil || host == "" || port == "" || len(req.Peer) > 300) {
		return errors.New("it does not say where the others reach it: give it --cluster-advertise")
	}
	return join.CheckClocks(req.Time, time.Now())
}

// admit takes the invitation, makes the controller a member that has no vote, and
// seals the keys for it. What fails leaves the invitation good.
func (s *Server) admit(ctx context.Context, req join.Request) (answer join.Answer, err error) {
	if err := invite.Take(ctx, s.store, req.ID, req.Secret, time.Now()); err != nil {
		return answer, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, invite.Return(context.WithoutCancel(ctx), s.store, req.ID, time.Now()))
		}
	}()
	network := rootName(s.keys.Authorities().Origin)
	if answer.Keys, err = pki.Export(s.dir.sub(keysDir), req.Seal, join.Purpose(network, req.ID)); err != nil {
		return answer, err
	}
	answer.Controller = roster.NewID()
	if req.Peer != "" {
		answer.Members, err = s.addMember(ctx, req.Peer)
	}
	return answer, err
}

// addMember adds a member without a vote at an address, and returns the URLs of
// those who can tell it of the others. One that was added before and never came
// gives way.
func (s *Server) addMember(ctx context.Context, address string) (urls []string, err error) {
	own := s.members()
	all, err := own.Members(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		switch {
		case m.URL != etcdstore.PeerURL(address):
			if m.Name != "" {
				urls = append(urls, m.URL)
			}
		case m.Name == "" && m.Learner:
			if err := own.Remove(ctx, m.ID); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("another controller, %s, is at %s: give this one an address of its own with --cluster-listen or --cluster-advertise; if it takes the place of that one, remove that with netkeep cluster remove %s", m.Name, address, m.Name)
		}
	}
	err = settled(ctx, func(ctx context.Context) error {
		_, err := own.AddLearner(ctx, address)
		return err
	})
	if etcdstore.SameAddress(err) {
		err = fmt.Errorf("another controller has just joined at %s: give this one an address of its own with --cluster-listen or --cluster-advertise", address)
	}
	return urls, err
}
