package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file that goes into something.
type entry struct {
	name, from string
	mode       int64
}

// documents are the files of the sources that everything comes with.
var documents = []string{"LICENSE", "README.md", "CHANGELOG.md"}

// entries are what an archive holds, in one directory.
func (r *release) entries(b binary) ([]entry, error) {
	top := strings.Join([]string{"netkeep", r.full(), b.os, b.arch}, "_") + "/"
	all := []entry{{top + b.file(), b.path, 0o755}, {top + licencesFile, b.licences(), 0o644}}
	for _, name := range documents {
		all = append(all, entry{top + name, filepath.Join(r.dir, name), 0o644})
	}
	if b.os == "windows" {
		return all, nil
	}
	for _, file := range completions {
		name := filepath.Base(file)
		if name == "netkeep" {
			name += ".bash"
		}
		all = append(all, entry{top + "completions/" + name, filepath.Join(r.temp, filepath.Base(file)), 0o644})
	}
	pages, err := filepath.Glob(filepath.Join(r.temp, "manual", "*.1"))
	for _, page := range pages {
		all = append(all, entry{top + "man/man1/" + filepath.Base(page), page, 0o644})
	}
	slices.SortFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return all, err
}

func (r *release) archive(b binary) error {
	all, err := r.entries(b)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	name := r.name(b.os, b.arch) + ".tar.gz"
	if b.os == "windows" {
		name = r.name(b.os, b.arch) + ".zip"
		err = zipped(&buf, all, r.time)
	} else {
		packed := gzip.NewWriter(&buf)
		if err = tarred(packed, all, r.time); err == nil {
			err = packed.Close()
		}
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, buf.Bytes(), 0o644)
}

// tarred writes an archive that is the same whoever makes it.
func tarred(w io.Writer, all []entry, at time.Time) error {
	out := tar.NewWriter(w)
	for _, e := range all {
		text, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		head := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(text)), ModTime: at, Format: tar.FormatPAX}
		if err := out.WriteHeader(head); err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return out.Close()
}

func zipped(w io.Writer, all []entry, at time.Time) error {
	out := zip.NewWriter(w)
	for _, e := range all {
		text, err := os.ReadFile(e.from)
		if err != nil {
			return err
		}
		head := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		head.SetMode(os.FileMode(e.mode))
		into, err := out.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := into.Write(text); err != nil {
			return err
		}
	}
	return out.Close()
}

// sums writes the list that sha256sum -c reads.
func (r *release) sums() error {
	names, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, e := range names {
		sum, err := sumOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(list.String()), 0o644)
}

func sumOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// packed compresses a file beside itself, as man pages are kept.
func (r *release) packed(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var buf bytes.Buffer
	into, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := into.Write(text); err != nil {
		return "", err
	}
	if err := into.Close(); err != nil {
		return "", err
	}
	return path + ".gz", os.WriteFile(path+".gz", buf.Bytes(), 0o644)
}
