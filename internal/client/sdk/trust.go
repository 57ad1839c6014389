package sdk

import (
	"context"
	"crypto/x509"
	"net/http"
	"slices"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/pki"
)

// authorities asks whom to trust, over a connection to a controller that is
// trusted.
func (a *api) authorities(ctx context.Context) ([]*x509.Certificate, error) {
	var text []byte
	if err := a.remote().Call(ctx, remote.Request{Method: http.MethodGet, Path: a.path("/.well-known/est/cacerts")}, &text); err != nil {
		return nil, err
	}
	return pki.ParsePKCS7Text(text, maxAuthorities)
}

// follow takes up whom to trust from now on, if the file says whom, and reports
// whether the certificate is of an authority on its way out.
func (r *renewal) follow(ctx context.Context) (outdated bool, err error) {
	c := r.client
	present, shown := c.id.trust.Load(), c.id.shown.Load()
	if present == nil || shown == nil {
		return false, nil
	}
	told, err := c.api.authorities(ctx)
	if err != nil {
		return false, err
	}
	outdated = pki.Outdated(c.id.pair.Load().Leaf, told)
	next := pki.Succession(present.cas, told, *shown, c.opt.Now())
	if pki.SameSet(next, present.cas) {
		return outdated, nil
	}
	if err := r.keepTrust(next); err != nil {
		return outdated, err
	}
	c.id.trust.Store(newTrust(next))
	c.api.show(c.id.pair.Load())
	c.log.Info("the network has other authorities from now on", "identity", c.Name(), "file", c.id.file)
	return outdated, nil
}

// keepTrust writes whom to trust into the identity's file, unless that only says
// where it is.
func (r *renewal) keepTrust(cas []*x509.Certificate) error {
	file, err := remote.OpenIdentity(r.client.id.file)
	if err != nil || !remote.IsInline(file.ID.CA) {
		return err
	}
	file.ID.CA = remote.Inline(pki.EncodeCertificates(cas...))
	return r.keep(&file)
}

// keepPlaces writes where all controllers are into the identity's file, for a start
// while the one that it names is gone. What goes wrong is tried again.
func (r *renewal) keepPlaces() {
	c := r.client
	var all []string
	if places := c.api.remote().Places(); len(places) > 1 {
		for _, at := range places {
			all = append(all, at+c.id.root)
		}
	}
	slices.Sort(all) // and not by who was asked last
	file, err := remote.OpenIdentity(c.id.file)
	if err != nil || slices.Equal(slices.Sorted(slices.Values(file.Own)), all) {
		return
	}
	file.Own = all
	if err := r.keep(&file); err != nil {
		c.log.Debug("where the controllers are could not be kept", "identity", c.Name(), "file", c.id.file, "error", err)
	}
}

// keep writes the identity's file anew.
func (r *renewal) keep(file *remote.Identity) error {
	heir := r.client.id.heir()
	place, err := heir.Prepare()
	if err != nil {
		return err
	}
	defer place.Close()
	data, err := file.Encode()
	if err != nil {
		return err
	}
	if err := place.Write(data); err != nil {
		return err
	}
	return heir.Succeed()
}
