// Package layout is the files of routers of others: where they are, as their
// configs say, and how they come to be when such a router enrolls. Routers of
// ours have their own home.
package layout

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"netkeep.internal/internal/client/enroll"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/lang/document"
)

// Layout is where the files of a router are, and the names it is reached
// under.
type Layout struct {
	Key, Cert, ServerCert, CA string
	// Endpoints is where the router looks for its controllers; empty for none.
	Endpoints string
	Names     enroll.Names
}

// In is the layout of a router whose files are in a directory.
func In(dir string) Layout {
	at := func(name string) string { return filepath.Join(dir, name) }
	return Layout{Key: at("router.key"), Cert: at("router.cert"), ServerCert: at("router.server.cert"), CA: at("router.cas")}
}

// maxConfig bounds a router's config.
const maxConfig = 1 << 20

// csrSection is what a router's config says of its certificates.
type csrSection struct {
	SANs enroll.Names `yaml:"sans"`
}

// routerConfig is what enrollment needs of a router's config; the rest is the
// router's.
type routerConfig struct {
	Identity struct {
		Key        string `yaml:"key"`
		Cert       string `yaml:"cert"`
		ServerCert string `yaml:"server_cert"`
		CA         string `yaml:"ca"`
	} `yaml:"identity"`
	Ctrl struct {
		EndpointsFile string `yaml:"endpointsFile"`
	} `yaml:"ctrl"`
	CSR  *csrSection `yaml:"csr"`
	Edge struct {
		CSR *csrSection `yaml:"csr"`
	} `yaml:"edge"`
}

// Read reads a router's config. Paths in it that are not absolute are
// below the working directory, as they are to the router.
func Read(path string) (Layout, error) {
	text, err := document.Read(path, maxConfig)
	if much := new(document.Excess); errors.As(err, &much) {
		return Layout{}, fmt.Errorf("%s is no router's config: %w", path, err)
	}
	if err != nil {
		return Layout{}, err
	}
	var c routerConfig
	if err := document.Decode(text, &c); err != nil {
		return Layout{}, fmt.Errorf("%s is no router's config: %s", path, document.Reason(err))
	}
	l := Layout{Endpoints: c.Ctrl.EndpointsFile}
	for _, p := range []struct {
		name, value string
		to          *string
	}{
		{"key", c.Identity.Key, &l.Key}, {"cert", c.Identity.Cert, &l.Cert},
		{"server_cert", c.Identity.ServerCert, &l.ServerCert}, {"ca", c.Identity.CA, &l.CA},
	} {
		if *p.to, err = filePath(p.value); err != nil {
			return Layout{}, fmt.Errorf("%s: identity.%s %w", path, p.name, err)
		}
	}
	if l.Endpoints == "" {
		l.Endpoints = filepath.Join(filepath.Dir(path), "endpoints.yml")
	}
	switch {
	case c.CSR != nil:
		l.Names = c.CSR.SANs
	case c.Edge.CSR != nil:
		l.Names = c.Edge.CSR.SANs
	}
	return l, nil
}

// filePath is the file that a part of a router's identity is in.
func filePath(value string) (string, error) {
	value = strings.TrimPrefix(value, "file://")
	switch scheme, _, found := strings.Cut(value, ":"); {
	case value == "":
		return "", errors.New("is missing: it must name the file to write")
	case strings.Contains(value, "${"):
		return "", errors.New("is said by a variable: name the file itself, or use --dir")
	case found && len(scheme) > 1:
		return "", fmt.Errorf("is kept by %s and not in a file: enroll such a router with its own program", scheme)
	}
	return value, nil
}

// Place is all files of a router, ready to be written.
type Place struct {
	layout Layout
	files  []*disk.File // key, cert, server cert, CA
}

// Prepare makes sure that all files can be written.
func (l Layout) Prepare(force bool) (*Place, error) {
	p := &Place{layout: l}
	for _, path := range []string{l.Key, l.Cert, l.ServerCert, l.CA} {
		f, err := disk.NewFile(path, force)
		if err != nil {
			p.Close()
			return nil, err
		}
		p.files = append(p.files, f)
	}
	return p, nil
}

// Write puts the files of a router in their places, and tells it where its
// controllers are: a list from an earlier network would win over its config.
func (p *Place) Write(r *enroll.Router, control []string) error {
	for i, data := range [][]byte{r.Key, r.Cert, r.ServerCert, r.CA} {
		if err := p.files[i].Write(data); err != nil {
			return err
		}
	}
	if p.layout.Endpoints == "" || len(control) == 0 {
		return nil
	}
	text, err := yaml.Marshal(map[string][]string{"endpoints": control})
	if err != nil {
		return err
	}
	f, err := disk.NewFile(p.layout.Endpoints, true)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Write(text)
}

// Close gives up what was not written.
func (p *Place) Close() {
	for _, f := range p.files {
		f.Close()
	}
}

// Request is how somebody wants to enroll a router.
type Request struct {
	// Config is the router's config, which says where its files are; if it is
	// empty, they go to Dir.
	Config, Dir string
	// Hosts are further names that the router is reached under.
	Hosts     []string
	Algorithm string // as in enroll.Request
	CA        string // as in enroll.Request
	Force     bool
	Now       func() time.Time
}

// Enroll enrolls a router, and says where its files are.
func Enroll(ctx context.Context, inv *enroll.Invitation, r Request) (Layout, error) {
	if !inv.IsRouter() {
		return Layout{}, enroll.ErrIdentity
	}
	layout := In(r.Dir)
	if r.Config != "" {
		var err error
		if layout, err = Read(r.Config); err != nil {
			return layout, err
		}
	}
	for _, host := range r.Hosts {
		layout.Names.Add(host)
	}
	opt := enroll.Options{Now: r.Now, Words: enroll.Flags}
	var err error
	if opt.Trust, err = enroll.ReadTrust(r.CA); err != nil {
		return layout, err
	}
	key, err := enroll.NewKey(r.Algorithm)
	if err != nil {
		return layout, err
	}
	place, err := layout.Prepare(r.Force)
	if err != nil {
		return layout, err
	}
	defer place.Close()
	c, err := enroll.Meet(ctx, inv, opt)
	if err != nil {
		return layout, err
	}
	defer c.Close()
	router, err := c.Router(ctx, key, layout.Names, false)
	if err != nil {
		return layout, err
	}
	return layout, place.Write(router, inv.Control)
}
