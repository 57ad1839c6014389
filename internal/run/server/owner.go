package server

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/pki"
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
	root, err := owner.Root(ctx, s.store)
	if err != nil {
		return err
	}
	keys, err := pki.Read(s.dir.sub(keysDir))
	if err != nil || keys != nil && root == "" {
		return err
	}
	file := filepath.Join(s.dir.sub(keysDir), "root.crt")
	switch {
	case root == "":
		free, err := owner.Free(ctx, s.store)
		if err == nil && !free {
			err = fmt.Errorf("the store belongs to the network with the root CA that was beside it, and %s is not there; %s", file, remedy)
		}
		return err
	case keys == nil:
		return fmt.Errorf("the store belongs to the network with the root CA %s, and %s is not there; %s", root, file, remedy)
	}
	if err := s.compareOwner(root, keys); err != nil {
		return err
	}
	return s.checkRetired(ctx, keys)
}

// checkRetired refuses keys of before a root CA took another's place: nobody
// trusts them any more. While both are trusted such keys still do for some.
func (s *Server) checkRetired(ctx context.Context, keys *pki.Authorities) error {
	roots, err := owner.Successors(ctx, s.store)
	if err != nil {
		return err
	}
	file := filepath.Join(s.dir.sub(keysDir), "root.crt")
	if slices.Contains(roots.Retired, rootName(keys.Root)) {
		return fmt.Errorf("the root CA in %s, %s, has retired: these are keys of before it was rotated; put the pki directory there that another controller of the network has, or a later backup",
			file, rootName(keys.Root))
	}
	if keys.Rotating() && slices.Contains(roots.Retired, rootName(keys.FormerRoot)) {
		s.log.Warn("the rotation of the root CA was finished at another controller, and here the one before is still trusted: copy the pki directory from there", "root", rootName(keys.FormerRoot))
	}
	here := rootNames(slices.Concat(keys.Roots(), keys.Retired))
	for _, root := range roots.Known {
		if !slices.Contains(here, root) && !slices.Contains(roots.Retired, root) {
			s.log.Warn("these are keys of before the root CA was rotated, and who has followed since is not let in: put the pki directory there that another controller of the network has, or a later backup",
				"file", file, "missing", root)
		}
	}
	return nil
}

// remedy is what to do about keys that are not those of the store.
const remedy = "put the pki directory of that network there, from a backup or from another of its controllers, or give this controller a store of its own; if they are lost for good, netkeep keys forget lets new ones be made"

// compareOwner knows a network by the root CA that it had first.
func (s *Server) compareOwner(owner string, keys *pki.Authorities) error {
	if rootName(keys.Origin) == owner {
		return nil
	}
	return fmt.Errorf("the store belongs to the network with the root CA %s, and %s is that of another, %s; %s",
		owner, filepath.Join(s.dir.sub(keysDir), "root.crt"), rootName(keys.Origin), remedy)
}

// claimStore writes down whose the store is, unless somebody has, and what became
// of its root CA.
func (s *Server) claimStore(ctx context.Context) error {
	keys := s.keys.Authorities()
	owner, err := owner.Claim(ctx, s.store, rootName(keys.Origin), time.Now())
	if err != nil {
		return err
	}
	if err := s.compareOwner(owner, keys); err != nil {
		return err
	}
	return s.noteRoots(ctx)
}

// noteRoots writes down which root CAs the network has had, and which of them
// have retired.
func (s *Server) noteRoots(ctx context.Context) error {
	keys := s.keys.Authorities()
	return owner.Note(ctx, s.store, owner.Succession{Known: rootNames(keys.Roots()), Retired: rootNames(keys.Retired)}, time.Now())
}

func rootNames(certs []*x509.Certificate) []string {
	var names []string
	for _, cert := range certs {
		names = append(names, rootName(cert))
	}
	return names
}
