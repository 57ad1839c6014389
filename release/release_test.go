package main

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// TestRelease makes a release from two copies of one commit, in places of their own: they
// are the same bytes, hold nothing of this machine, and are what they are meant to be.
func TestRelease(t *testing.T) {
	from, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	places := []string{filepath.Join(top, "a"), filepath.Join(top, "a longer way", "b")}
	var made []map[string][]byte
	for _, place := range places {
		if out, err := exec.Command("git", "clone", "-q", from, place).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		tag := exec.Command("git", "-C", place, "tag", "v1.2.3")
		if out, err := tag.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := run(place, place+"-out", []string{"linux/amd64"}); err != nil {
			t.Fatal(err)
		}
		made = append(made, texts(t, place+"-out"))
	}
	// docs/install.md calls them so.
	want := []string{"SHA256SUMS", "netkeep-1.2.3-1.x86_64.rpm", "netkeep_1.2.3_amd64.deb", "netkeep_1.2.3_linux_amd64.cdx.json",
		"netkeep_1.2.3_linux_amd64.tar.gz", "netkeep_1.2.3_oci.tar"}
	for _, m := range made {
		if got := slices.Sorted(maps.Keys(m)); !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v", got, want)
		}
	}
	commit, err := exec.Command("git", "-C", from, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range made[0] {
		if !bytes.Equal(text, made[1][name]) {
			t.Errorf("%s is not the same twice", name)
		}
	}
	one(t, places[0]+"-out", top)
	words(t, bill(t, made[0]["netkeep_1.2.3_linux_amd64.cdx.json"], strings.TrimSpace(string(commit))), map[string]string{
		"the image":   string(read(t, filepath.Join(top, "root", "usr", "share", "doc", "netkeep", licencesFile))),
		"the archive": inArchive(t, filepath.Join(places[0]+"-out", "netkeep_1.2.3_linux_amd64.tar.gz"), "netkeep_1.2.3_linux_amd64/"+licencesFile),
	})
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// inArchive is a file of an archive.
func inArchive(t *testing.T, archive, name string) string {
	t.Helper()
	text, err := exec.Command("tar", "-xzOf", archive, name).Output()
	if err != nil {
		t.Fatalf("%s in %s: %v", name, archive, err)
	}
	return string(text)
}

// words looks whether everything that a binary was made of comes with its licence, of which
// many want one line kept above all.
func words(t *testing.T, parts []cdx.Component, places map[string]string) {
	t.Helper()
	for place, text := range places {
		for _, p := range parts {
			name := p.Name + " " + p.Version
			if p.Name == "std" {
				name = "Go " + p.Version
			}
			if !strings.Contains(text, "\n"+name+"\n") {
				t.Errorf("%s says nothing of %s", place, name)
			}
		}
		for _, want := range []string{"Copyright 2009 The Go Authors", "Apache License", "Redistribution and use in source and binary forms", "Permission is hereby granted, free of charge"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q", place, want)
			}
		}
	}
}

func texts(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if all[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// bill looks at the list of what a binary was made of, and of which commit.
func bill(t *testing.T, text []byte, commit string) []cdx.Component {
	t.Helper()
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if self := bom.Metadata.Component; self.Version != "1.2.3" || !slices.Contains(*self.Properties, cdx.Property{Name: "build:vcs.revision", Value: commit}) {
		t.Errorf("it is of %+v, want version 1.2.3 of %s", self, commit)
	}
	refs := map[string]bool{}
	for _, c := range *bom.Components {
		if c.Version == "" || c.PackageURL == "" || refs[c.BOMRef] {
			t.Errorf("a module is %+v", c)
		}
		refs[c.BOMRef] = true
	}
	if len(refs) < 20 || !strings.Contains(string(text), "go.etcd.io") {
		t.Errorf("it lists %d modules", len(refs))
	}
	return *bom.Components
}

// one unpacks the image, and looks at what it holds and how it is run.
func one(t *testing.T, out, top string) {
	t.Helper()
	image, err := filepath.Glob(filepath.Join(out, "*_oci.tar"))
	if err != nil || len(image) != 1 {
		t.Fatalf("the image is %v, %v", image, err)
	}
	dir := filepath.Join(top, "layout")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("tar", "-C", dir, "-xf", image[0]).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	all := imagesOf(t, dir)
	if len(all) != 1 {
		t.Fatalf("there are images for %v", slices.Collect(maps.Keys(all)))
	}
	img := all["linux/amd64"]
	conf, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if conf.Config.User != "65532:65532" || conf.Config.Healthcheck == nil {
		text, _ := json.Marshal(conf.Config)
		t.Errorf("it is run as %s", text)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	root, size := filepath.Join(top, "root"), int64(0)
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			t.Fatal(err)
		}
		size += n
		text, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		unpack := exec.Command("tar", "-C", root, "-xf", "-")
		unpack.Stdin = text
		if said, err := unpack.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
	}
	if size > 60<<20 {
		t.Errorf("the image has %d MiB", size>>20)
	}
	static(t, filepath.Join(root, "usr", "bin", "netkeep"), top)
	serves(t, root)
}

// imagesOf are those of a layout, by their systems. Podman and skopeo take a layout that names
// one thing, and find in it what is for their system.
func imagesOf(t *testing.T, dir string) map[string]v1.Image {
	t.Helper()
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	list, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Manifests) != 1 || list.Manifests[0].Annotations["io.containerd.image.name"] == "" {
		t.Fatalf("the layout names %+v", list.Manifests)
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if list, err = index.IndexManifest(); err != nil {
		t.Fatal(err)
	}
	all := map[string]v1.Image{}
	for _, m := range list.Manifests {
		if all[m.Platform.String()], err = index.Image(m.Digest); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestImage makes one for two systems, and finds both.
func TestImage(t *testing.T) {
	r := &release{out: t.TempDir(), temp: t.TempDir(), version: "1.2.3"}
	for _, arch := range []string{"amd64", "arm64"} {
		b := binary{"linux", arch, filepath.Join(r.temp, arch, "netkeep")}
		if err := os.Mkdir(filepath.Dir(b.path), 0o755); err != nil {
			t.Fatal(err)
		}
		for path, text := range map[string]string{b.path: arch, b.licences(): "licences"} {
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		r.binaries = append(r.binaries, b)
	}
	if err := r.image(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if text, err := exec.Command("tar", "-C", dir, "-xf", filepath.Join(r.out, "netkeep_1.2.3_oci.tar")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	all := imagesOf(t, dir)
	if len(all) != 2 || all["linux/amd64"] == nil || all["linux/arm64"] == nil {
		t.Errorf("there are images for %v", slices.Collect(maps.Keys(all)))
	}
}

// static looks for what a binary must not have: a library of the system, and what this
// machine calls its directories.
func static(t *testing.T, path, top string) {
	t.Helper()
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs libraries of the system")
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(top)) {
		t.Errorf("it names %s", top)
	}
}

// serves runs a controller in the unpacked image, in namespaces of its own: as its user, on
// a root that is read-only, and asks for its health as an orchestrator does.
func serves(t *testing.T, root string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("*** NOT RUN: only root may make namespaces. That the image serves was not shown.")
		return
	}
	const script = `set -eu
ip link set lo up
mount --bind "$1" "$1"
mount -t tmpfs -o uid=65532,gid=65532,mode=700 none "$1/data"
mount -o remount,ro,bind "$1"
netkeep() { env -i PATH=/usr/bin HOME=/data NETKEEP_DATA=/data/controller NETKEEP_LISTEN=127.0.0.1:1280 "$(command -v chroot)" --userspec=65532:65532 "$1" /usr/bin/netkeep "$2"; }
netkeep "$1" run > /dev/null 2>&1 &
n=0
until netkeep "$1" health; do n=$((n+1)); test $n -lt 240; sleep 0.5; done
if touch "$1/usr/x" 2>/dev/null; then echo the root can be written; exit 1; fi
kill $!
`
	cmd := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", root)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nok\n") && !strings.HasPrefix(string(out), "ok\n") {
		t.Errorf("the image does not serve: %v\n%s", err, out)
	}
}
