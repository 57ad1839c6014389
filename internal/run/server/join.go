package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"netkeep.internal/internal/client/join"
	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/pki"
)

// join has this controller join the network of the token that it was given,
// unless it has. It changes nothing before another controller has agreed, and
// what it then writes counts only when it is whole.
func (s *Server) join(ctx context.Context) error {
	if s.cfg.Join == "" {
		return nil
	}
	token, err := join.Parse(s.cfg.Join)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	done, err := s.joinedBefore(token)
	if err != nil || done {
		return err
	}
	if err := token.CheckTime(time.Now()); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := s.checkShared(ctx, token); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := s.takePart(ctx, token); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	s.log.Info("this controller has joined the network", "root", token.Network)
	return nil
}

// joinedBefore reports whether the data directory is that of a controller which
// has joined the network of the token, and refuses any other that is not empty.
func (s *Server) joinedBefore(token join.Token) (bool, error) {
	st, err := s.dir.stage()
	if err != nil {
		return false, err
	}
	if st.Stage == stageJoining {
		// Nothing that is there counts.
		return false, errors.Join(os.RemoveAll(s.dir.sub(keysDir)), os.RemoveAll(s.dir.sub(storeDir)), s.dir.drop(controllerFile))
	}
	keys, err := pki.Read(s.dir.sub(keysDir))
	if err != nil {
		return false, err
	}
	joined := st.Stage == stageJoined || st.Stage == stageMember
	switch {
	case keys != nil && rootName(keys.Origin) != token.Network:
		return false, fmt.Errorf("join: %s belongs to the network with the root CA %s, and the token is for that with %s: give this controller an empty directory with --data", s.dir.path, rootName(keys.Origin), token.Network)
	case keys != nil && joined:
		s.log.Info("this controller has joined the network before; the token is not needed")
		return true, nil
	case keys != nil || s.dir.hasStore():
		return false, fmt.Errorf("join: %s holds the keys or the store of a network that this controller did not join: give it an empty directory with --data", s.dir.path)
	case joined:
		return false, fmt.Errorf("join: the keys are gone from %s: empty %s and start again with a new token of netkeep cluster invite", s.dir.sub(keysDir), s.dir.path)
	}
	return false, nil
}

// checkShared refuses a store by address that is not that of the network.
func (s *Server) checkShared(ctx context.Context, token join.Token) error {
	if len(s.cfg.Store.Endpoints) == 0 {
		return nil
	}
	st, err := dialCluster(ctx, s.cfg.Store, s.log)
	if err != nil {
		return err
	}
	root, err := owner.Root(ctx, st)
	if err := errors.Join(err, st.Close()); err != nil {
		return err
	}
	if root != token.Network {
		return fmt.Errorf("the store at store.endpoints, below the prefix %q, is not that of the network that the token is for: give this controller the store.endpoints and the store.prefix that the others have", s.cfg.Store.Prefix)
	}
	return nil
}

// takePart asks to join, and keeps what it gets.
func (s *Server) takePart(ctx context.Context, token join.Token) error {
	to, err := pki.NewRecipient()
	if err != nil {
		return err
	}
	if err := s.dir.setStage(stage{Stage: stageJoining}); err != nil {
		return err
	}
	answer, err := join.Ask(ctx, token, join.Request{
		Seal: to.Public(), Version: build.Version, Format: format.Current, Oldest: format.Oldest, Time: time.Now().UTC(), Peer: s.peerAddress(),
	})
	if err != nil {
		return errors.Join(err, s.dir.drop(clusterFile)) // nothing was changed
	}
	err = to.Import(s.dir.sub(keysDir), answer.Keys, join.Purpose(token.Network, token.ID), func(a *pki.Authorities) error {
		if rootName(a.Origin) != token.Network {
			return errors.New("they are not those of the network that the token is for")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := s.dir.note(controllerFile, answer.Controller); err != nil {
		return err
	}
	return s.dir.setStage(stage{Stage: stageJoined, Members: answer.Members})
}
