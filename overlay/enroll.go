package overlay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"netkeep.internal/internal/client/enroll"
)

// EnrollOption is what may be said of an enrollment.
type EnrollOption func(*enroll.Request)

// WithCertificate enrolls with a certificate of another CA and its key, if the
// token is for somebody who has one. The identity's file names both; they stay
// where they are.
func WithCertificate(certFile, keyFile string) EnrollOption {
	return func(r *enroll.Request) { r.Cert, r.Key = certFile, keyFile }
}

// WithCA names a file of certificates that vouch for the controller, if its own
// is of another authority than the network's and than those that the machine
// knows.
func WithCA(file string) EnrollOption { return func(r *enroll.Request) { r.CA = file } }

// Enroll joins a network with the text of an enrollment token, and writes the
// file of the identity that [Open] reads. Nothing is sent to a server whose key
// did not sign the token or, if that does not answer and the token names other
// controllers, that is not of the root CA that it names; the file names whom to trust from then on. It holds a
// private key, which never leaves it, and only its owner may read it. A file
// that is there is never written over: then nothing is asked of anybody, and the
// error is fs.ErrExist. A token works once.
func Enroll(ctx context.Context, token, identityFile string, options ...EnrollOption) error {
	inv, err := enroll.Read(token)
	if err != nil {
		return err
	}
	r := enroll.Request{Output: identityFile, Now: time.Now}
	for _, o := range options {
		o(&r)
	}
	if _, err = os.Lstat(identityFile); err == nil {
		err = fs.ErrExist
	} else {
		_, _, err = enroll.Enroll(ctx, inv, r)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is not written over: name another file, or move it away if another identity is wanted: %w", identityFile, fs.ErrExist)
	}
	return err
}

// maxToken is more than any enrollment token has.
const maxToken = 64 << 10

// EnrollFile is Enroll with a token that is in a file.
func EnrollFile(ctx context.Context, tokenFile, identityFile string, options ...EnrollOption) error {
	f, err := os.Open(tokenFile)
	if err != nil {
		return err
	}
	defer f.Close()
	token, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return err
	}
	return Enroll(ctx, string(token), identityFile, options...)
}
