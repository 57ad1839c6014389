package enroll

import (
	"cmp"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/lang/method"
	"netkeep.internal/internal/pki"
)

// Request is how somebody wants to enroll.
type Request struct {
	// Output is the identity's file; not needed for a password.
	Output string
	Force  bool // write over a file that is there
	// Cert and Key are files: a certificate of another CA with its key, or a
	// key to enroll with instead of a new one.
	Cert, Key string
	// Algorithm is that of a new key: ec or rsa.
	Algorithm string
	// CA is a file of certificates that vouch for the controller's own.
	CA string
	// Name is a wish for that of a new identity, where a CA brings it in.
	Name string
	// Several has the file name all controllers under the name that SDKs of others
	// look for, of which some cannot bear it.
	Several bool
	// Username counts if the invitation has none.
	Username string
	// Password asks for one.
	Password func() (string, error)
	Now      func() time.Time
	Words    Words
}

// Words are how whoever is told what is wrong gives files; empty if the caller
// is a program, which knows best.
type Words struct{ Output, Cert, Key, CA string }

// Flags are the words of the command line.
var Flags = Words{Output: "-o", Cert: "--cert", Key: "--key", CA: "--ca"}

// with says how to give a file.
func with(word string) string {
	if word == "" {
		return ""
	}
	return " with " + word + " FILE"
}

// Enroll does what an invitation asks for, and writes the identity's file. It
// returns the file's name, empty if none was asked for, and for a password the user name that
// belongs to it, empty if the controller does not tell.
func Enroll(ctx context.Context, inv *Invitation, r Request) (file, username string, err error) {
	switch {
	case inv.IsRouter():
		return "", "", errRouter
	case r.Output == "" && inv.Method != method.Password:
		return "", "", fmt.Errorf("name a file for the identity%s", with(r.Words.Output))
	}
	opt := Options{Now: r.Now, Words: r.Words}
	if opt.Trust, err = ReadTrust(r.CA); err != nil {
		return "", "", err
	}
	key, err := r.material(inv, &opt)
	if err != nil {
		return "", "", err
	}
	out := new(disk.File)
	if r.Output != "" {
		if out, err = disk.NewFile(r.Output, r.Force); err != nil {
			return "", "", err
		}
		defer out.Close()
	}
	who, username, err := r.enter(ctx, inv, opt, key)
	if err != nil || r.Output == "" {
		return "", username, err
	}
	if r.Several {
		who.APIs = who.Own
	}
	data, err := who.Encode()
	if err != nil {
		return "", "", err
	}
	return r.Output, username, out.Write(data)
}

// material reads or makes what the way to enroll needs: a key, or a certificate
// to show.
func (r Request) material(inv *Invitation, opt *Options) (key crypto.Signer, err error) {
	switch {
	case inv.Method == method.OTT && r.Cert != "":
		return nil, fmt.Errorf("the token brings a certificate of its own: leave %s out", cmp.Or(r.Words.Cert, "the other"))
	case inv.Method == method.OTT && r.Key != "":
		return readKey(r.Key)
	case inv.Method == method.OTT:
		return NewKey(r.Algorithm)
	case inv.Method == method.Password && (r.Cert != "" || r.Key != ""):
		return nil, fmt.Errorf("the token is for somebody with a password: leave %s and %s out", cmp.Or(r.Words.Cert, "certificate"), cmp.Or(r.Words.Key, "key"))
	case inv.Method == method.Password && r.Password == nil:
		return nil, errors.New("the token is for somebody with a password, which a program has not: have an admin add an enrollment of type ott")
	case inv.Method == method.Password:
		return nil, nil
	case r.Cert == "" || r.Key == "":
		return nil, r.Words.needCert()
	}
	pair, err := tls.LoadX509KeyPair(r.Cert, r.Key)
	if err != nil {
		return nil, fmt.Errorf("the certificate in %s and the key in %s cannot be used: %w", r.Cert, r.Key, err)
	}
	opt.Show = &pair
	return nil, nil
}

// enter enrolls in the way of the invitation.
func (r Request) enter(ctx context.Context, inv *Invitation, opt Options, key crypto.Signer) (who *remote.Identity, username string, err error) {
	certPath, err := fileURL(r.Cert)
	if err != nil {
		return nil, "", err
	}
	keyPath, err := fileURL(r.Key)
	if err != nil {
		return nil, "", err
	}
	c, err := Meet(ctx, inv, opt)
	if err != nil {
		return nil, "", err
	}
	defer c.Close()
	switch inv.Method {
	case method.OTT:
		who, err = c.Device(ctx, key, keyPath)
		return who, "", err
	case method.Password:
		password, err := r.Password()
		if err != nil {
			return nil, "", err
		}
		return c.Password(ctx, r.Username, password)
	}
	who, err = c.Certificate(ctx, r.Name, certPath, keyPath)
	return who, "", err
}

// fileURL is how an identity's file names another file.
func fileURL(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	path, err := filepath.Abs(path)
	return "file://" + path, err
}

// Algorithms are the words for kinds of keys.
func Algorithms() []string { return []string{"ec", "rsa"} }

// NewKey makes a key of a kind.
func NewKey(algorithm string) (crypto.Signer, error) {
	switch algorithm {
	case "", "ec":
		return pki.P256.Generate()
	case "rsa":
		return pki.RSA3072.Generate()
	}
	return nil, fmt.Errorf("there is no kind of key %q: it is %s", algorithm, strings.Join(Algorithms(), " or "))
}

// maxPEM is more than keys and certificates of anybody take.
const maxPEM = 1 << 20

func readPEM(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxPEM))
}

func readKey(path string) (crypto.Signer, error) {
	text, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	key, err := pki.ParseKey(text)
	if err != nil {
		return nil, fmt.Errorf("the key in %s: %w", path, err)
	}
	return key, nil
}

// ReadTrust reads certificates that vouch for a controller; none if there is no
// file.
func ReadTrust(path string) ([]*x509.Certificate, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	certs, err := pki.ParseCertificates(text, maxAuthorities)
	if err != nil {
		return nil, fmt.Errorf("the certificates in %s: %w", path, err)
	}
	return slices.Clip(certs), nil
}
