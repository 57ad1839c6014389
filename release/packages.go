package main

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packages are for Debian and for Fedora, and what comes of either.
func (r *release) packages(b binary) error {
	for _, format := range []string{"deb", "rpm"} {
		info, err := r.info(b, format)
		if err != nil {
			return err
		}
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		info = nfpm.WithDefaults(info)
		out, err := os.Create(filepath.Join(r.out, packager.ConventionalFileName(info)))
		if err != nil {
			return err
		}
		if err := packager.Package(info, out); err != nil {
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) info(b binary, format string) (*nfpm.Info, error) {
	all, err := r.contents(b, format)
	if err != nil {
		return nil, err
	}
	script := func(name string) string { return filepath.Join(r.dir, "release", "scripts", name) }
	info := &nfpm.Info{
		Name: "netkeep", Arch: b.arch, Platform: "linux", Version: r.version, Prerelease: r.before,
		VersionSchema: "semver", Section: "net", Priority: "optional", Maintainer: "netkeep <netkeep@localhost>", License: "Apache-2.0",
		Description: "Private, zero-trust overlay network\n" +
			"Controller, router, tunneler and command line of a network in which nobody\n" +
			"reaches anything but what a policy gives them. Nothing is started when it is\n" +
			"installed.",
		MTime: r.time,
	}
	info.Overridables = nfpm.Overridables{
		Contents: all, Depends: []string{"systemd | systemd-standalone-sysusers"}, Recommends: []string{"ca-certificates"},
		Scripts: nfpm.Scripts{PostInstall: script("install"), PreRemove: script("remove"), PostRemove: script("removed")},
	}
	info.RPM.BuildHost, info.RPM.Group = "localhost", "System Environment/Daemons"
	if format == "rpm" {
		info.Depends = []string{"systemd"}
	}
	return info, nil
}

// contents are the files of a package.
func (r *release) contents(b binary, format string) (files.Contents, error) {
	var all files.Contents
	add := func(kind, from, to string, mode os.FileMode) {
		all = append(all, &files.Content{Source: from, Destination: to, Type: kind, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time, Owner: "root", Group: "root"}})
	}
	add("", b.path, "/usr/bin/netkeep", 0o755)
	add("config|noreplace", filepath.Join(r.dir, "release", "controller.yml"), "/etc/netkeep/controller.yml", 0o644)
	for _, name := range []string{"netkeep-controller.service", "netkeep-router.service", "netkeep-tunneler@.service"} {
		add("", filepath.Join(r.temp, "units", name), "/usr/lib/systemd/system/"+name, 0o644)
	}
	add("", filepath.Join(r.temp, "units", "sysusers.conf"), "/usr/lib/sysusers.d/netkeep.conf", 0o644)
	add("", filepath.Join(r.temp, "units", "tmpfiles.conf"), "/usr/lib/tmpfiles.d/netkeep.conf", 0o644)
	for _, file := range completions {
		to := file
		if format == "rpm" {
			to = strings.Replace(to, "vendor-completions", "site-functions", 1)
		}
		add("", filepath.Join(r.temp, filepath.Base(file)), to, 0o644)
	}
	for _, name := range documents {
		to := name
		from := filepath.Join(r.dir, name)
		if name == "LICENSE" && format == "deb" { // Debian has the text, and wants it named
			from, to = filepath.Join(r.dir, "release", "copyright"), "copyright"
		}
		add("", from, "/usr/share/doc/netkeep/"+to, 0o644)
	}
	add("", b.licences(), "/usr/share/doc/netkeep/"+licencesFile, 0o644)
	pages, err := filepath.Glob(filepath.Join(r.temp, "manual", "*.1"))
	for _, page := range pages {
		packed, err := r.packed(page)
		if err != nil {
			return nil, err
		}
		add("", packed, "/usr/share/man/man1/"+filepath.Base(packed), 0o644)
	}
	return all, err
}
