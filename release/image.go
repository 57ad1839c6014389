package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is who the program runs as in a container; orchestrators that forbid root want
// a number.
const nobody = 65532

// image is for containers: the program, the CAs that browsers trust, and a directory for
// data, and nothing that could be run besides. All systems are in one file.
func (r *release) image() error {
	var index v1.ImageIndex = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	some := false
	for _, b := range r.binaries {
		if b.os != "linux" {
			continue
		}
		img, err := r.imageOf(b)
		if err != nil {
			return err
		}
		some = true
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: b.os, Architecture: b.arch},
		}})
	}
	if !some {
		return nil
	}
	// The file names one thing, which is for all systems: podman and skopeo refuse one that
	// names several.
	one := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{
		Annotations: map[string]string{"org.opencontainers.image.ref.name": r.full(), "io.containerd.image.name": "netkeep:" + r.full()},
	}})
	dir := filepath.Join(r.temp, "image")
	if _, err := layout.Write(dir, one); err != nil {
		return err
	}
	return r.together(dir)
}

func (r *release) imageOf(b binary) (v1.Image, error) {
	bottom, err := r.bottom()
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	licences, err := os.ReadFile(b.licences())
	if err != nil {
		return nil, err
	}
	top, err := layerOf([]item{
		{name: "usr/bin/netkeep", text: program, mode: 0o755},
		{name: "usr/share/doc/netkeep/" + licencesFile, text: licences, mode: 0o644},
	}, r.time)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.AppendLayers(img, bottom, top); err != nil {
		return nil, err
	}
	conf, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	conf = conf.DeepCopy()
	conf.OS, conf.Architecture, conf.Created = b.os, b.arch, v1.Time{Time: r.time}
	conf.Config = v1.Config{
		User: "65532:65532", WorkingDir: "/data", Entrypoint: []string{"/usr/bin/netkeep"}, Cmd: []string{"run"},
		Env:         []string{"PATH=/usr/bin", "HOME=/data", "NETKEEP_DATA=/data/controller", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Volumes:     map[string]struct{}{"/data": {}},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/usr/bin/netkeep", "health"}, Interval: 10 * time.Second, Timeout: 6 * time.Second, StartPeriod: time.Minute, Retries: 3},
		Labels:      map[string]string{"org.opencontainers.image.title": "netkeep", "org.opencontainers.image.version": r.full(), "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(img, conf)
}

// item is a file or directory of an image.
type item struct {
	name string
	text []byte // nil for a directory
	mode int64
	who  int
}

// bottom is what seldom changes: the CAs, the names of users, and a place for data.
func (r *release) bottom() (v1.Layer, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return layerOf([]item{
		{name: "data/", mode: 0o700, who: nobody},
		{name: "etc/passwd", text: []byte("root:x:0:0:root:/:/none\nnetkeep:x:65532:65532:netkeep:/data:/none\n"), mode: 0o644},
		{name: "etc/group", text: []byte("root:x:0:\nnetkeep:x:65532:\n"), mode: 0o644},
		{name: "etc/ssl/certs/ca-certificates.crt", text: roots.Bytes(), mode: 0o644},
	}, r.time)
}

func layerOf(items []item, at time.Time) (v1.Layer, error) {
	var buf bytes.Buffer
	out := tar.NewWriter(&buf)
	made := map[string]bool{}
	for _, i := range items {
		parts := strings.Split(strings.TrimSuffix(i.name, "/"), "/")
		for n := range len(parts) - 1 {
			dir := strings.Join(parts[:n+1], "/") + "/"
			if !made[dir] {
				made[dir] = true
				if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, ModTime: at}); err != nil {
					return nil, err
				}
			}
		}
		head := &tar.Header{Name: i.name, Mode: i.mode, Size: int64(len(i.text)), ModTime: at, Uid: i.who, Gid: i.who, Typeflag: tar.TypeReg}
		if i.text == nil {
			head.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(head); err != nil {
			return nil, err
		}
		if _, err := out.Write(i.text); err != nil {
			return nil, err
		}
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buf.Bytes())), nil }
	return tarball.LayerFromOpener(opener, tarball.WithMediaType(types.OCILayer))
}

// together makes one file of an image's layout, which podman, skopeo, containerd and
// Docker load.
func (r *release) together(dir string) error {
	var all []entry
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			all = append(all, entry{filepath.ToSlash(name), path, 0o644})
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var buf bytes.Buffer
	if err := tarred(&buf, all, r.time); err != nil {
		return err
	}
	return os.WriteFile(r.name("oci")+".tar", buf.Bytes(), 0o644)
}
