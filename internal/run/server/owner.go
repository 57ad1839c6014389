package server

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"netkeep/internal/data/network"
	"netkeep/internal/pki"
)

// keysDir is where in the data directory the keys are.
const keysDir = "pki"

// rootName is what a store calls a root CA.
func rootName(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// checkOwner refuses a store that belongs to another network than the keys do.
// It runs before there are any keys: a controller that made its own for a
// network that has some would shut everybody out.
func (s *Server) checkOwner(ctx context.Context) error {
	owner, err := network.Root(ctx, s.store)
	if err != nil {
		return err
	}
	root, err := pki.RootIn(s.dir.sub(keysDir))
	if err != nil || root != nil && owner == "" {
		return err
	}
	file := filepath.Join(s.dir.sub(keysDir), "root.crt")
	switch {
	case owner == "":
		free, err := network.Free(ctx, s.store)
		if err == nil && !free {
			err = fmt.Errorf("the store belongs to the network with the root CA that was beside it, and %s is not there; %s", file, remedy)
		}
		return err
	case root == nil:
		return fmt.Errorf("the store belongs to the network with the root CA %s, and %s is not there; %s", owner, file, remedy)
	}
	return s.compareOwner(owner, root)
}

// remedy is what to do about keys that are not those of the store.
const remedy = "put the pki directory of that network there, from a backup or from another of its controllers, or give this controller a store of its own; if they are lost for good, netkeep keys forget lets new ones be made"

func (s *Server) compareOwner(owner string, root *x509.Certificate) error {
	if rootName(root) == owner {
		return nil
	}
	return fmt.Errorf("the store belongs to the network with the root CA %s, and %s is that of another, %s; %s",
		owner, filepath.Join(s.dir.sub(keysDir), "root.crt"), rootName(root), remedy)
}

// claimStore writes down whose the store is, unless somebody has.
func (s *Server) claimStore(ctx context.Context) error {
	owner, err := network.Claim(ctx, s.store, rootName(s.keys.Root()), time.Now())
	if err != nil {
		return err
	}
	return s.compareOwner(owner, s.keys.Root())
}
