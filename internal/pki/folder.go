package pki

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"netkeep.internal/internal/disk"
)

// The files of a keystore. Those with a secret in them end in secretSuffix.
const (
	macKeyFile          = "mac.key"
	rootKeyFile         = "root.key"
	rootFile            = "root.crt"
	intermediateKeyFile = "intermediate.key"
	intermediateFile    = "intermediate.crt"
	serverKeyFile       = "server.key"
	serverFile          = "server.crt"

	secretSuffix = ".key"
	tempPrefix   = ".tmp-"
	lockFile     = ".lock"
)

// creation is the order in which the files are made. Each is whole or absent,
// so a creation that was cut short leaves the first few of them; any other gap
// means that a file was lost.
var creation = [...]string{
	macKeyFile, rootKeyFile, rootFile, intermediateKeyFile, intermediateFile, serverKeyFile, serverFile,
}

// folder is the directory of a keystore.
type folder struct {
	path   string
	rename func(from, to string) error // os.Rename
	// given is read in place of what is there, if there is any.
	given change
}

func (f folder) file(name string) string { return filepath.Join(f.path, name) }

// restore is the remedy for what cannot be made again.
const restore = "restore it from a backup"

// problem is an error about one file that tells the operator what to do.
func (f folder) problem(name string, err error) error {
	remedy := restore
	switch name {
	case serverKeyFile, serverFile, peerKeyFile, peerFile, peerTrustFile:
		remedy = "delete it and a new one is made"
	case clusterKeyFile, clusterFile, nextClusterKeyFile, nextClusterFile, formerClusterFile:
		remedy = "copy it from the pki directory of another member of the cluster"
	case macKeyFile:
		remedy = "restore it from a backup, or put 32 random bytes there, which ends every API session, and no invitation or second factor can be read any more"
	}
	return fmt.Errorf("%s: %w; %s", f.file(name), err, remedy)
}

// make makes the directory if there is none.
func (f folder) make() error {
	_, err := os.Stat(f.path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(f.path))
}

// close keeps others out of the directory. One that is open to others is closed
// if it holds no keys yet and refused otherwise, since what is in it may have
// been read or exchanged.
func (f folder) close() error {
	info, err := os.Stat(f.path)
	if err != nil || !Exposed(info) {
		return err
	}
	present, err := f.present()
	if err != nil {
		return err
	}
	if len(present) > 0 {
		return fmt.Errorf("%s is open to other users (mode %04o): run chmod 700 on it", f.path, info.Mode().Perm())
	}
	return os.Chmod(f.path, 0o700)
}

// present returns the names of the keystore's files that exist.
func (f folder) present() ([]string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if slices.Contains(creation[:], e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// checkLost refuses a keystore from which a file was lost, rather than making
// another that does not fit what was issued already. The server's own files
// can always be made again. The root's key may be kept elsewhere once the
// intermediate is signed.
func (f folder) checkLost() error {
	present, err := f.present()
	if err != nil {
		return err
	}
	has := func(name string) bool { return slices.Contains(present, name) }
	signed := has(rootFile) && has(intermediateKeyFile) && has(intermediateFile)
	for i, name := range creation {
		if has(name) || name == serverKeyFile || name == serverFile || name == rootKeyFile && signed {
			continue
		}
		if later := slices.IndexFunc(creation[i+1:], has); later >= 0 {
			return f.problem(name, fmt.Errorf("missing, although %s exists", creation[i+1+later]))
		}
	}
	return nil
}

// sweep removes what a writer that was cut short left behind.
func (f folder) sweep() error {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			if err := os.Remove(f.file(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// write replaces a file in one step that survives a crash: afterwards the file
// has either its old content or all of the new.
func (f folder) write(name string, data []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", f.file(name), err)
		}
	}()
	tmp, err := os.CreateTemp(f.path, tempPrefix) // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once it has its name, as it should
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := f.rename(tmp.Name(), f.file(name)); err != nil {
		return err
	}
	return disk.Sync(f.path)
}

func (f folder) remove(name string) error {
	err := os.Remove(f.file(name))
	if err == nil {
		err = disk.Sync(f.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// read returns the content of a file and whether there is one, by the change that
// is being made if that says it.
func (f folder) read(name string) (data []byte, found bool, err error) {
	if f.given != nil {
		data, found = f.given[name]
		return data, found, nil
	}
	c, err := f.pending()
	if err != nil {
		return nil, false, err
	}
	if data, changed := c[name]; changed {
		return data, len(data) > 0, nil
	}
	return f.readOwn(name)
}

// readOwn returns what is in a file. A secret that others can read is refused:
// whether it is still one is for the operator to say.
func (f folder) readOwn(name string) (data []byte, found bool, err error) {
	file, err := os.Open(f.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, false, err
	}
	if strings.HasSuffix(name, secretSuffix) && Exposed(info) {
		return nil, false, fmt.Errorf("%s is open to other users (mode %04o): run chmod 600 on it, or replace it if it may have been read",
			f.file(name), info.Mode().Perm())
	}
	data, err = io.ReadAll(io.LimitReader(file, maxPEM+1))
	if err != nil {
		return nil, false, err
	}
	return data, true, nil
}

// readKey returns the private key in a file, or nil if there is no file.
func (f folder) readKey(name string) (crypto.Signer, error) {
	data, found, err := f.read(name)
	if err != nil || !found {
		return nil, err
	}
	key, err := ParseKey(data)
	if err != nil {
		return nil, f.problem(name, err)
	}
	return key, nil
}

// readCertificates returns the certificates in a file, or nil if there is no
// file.
func (f folder) readCertificates(name string, limit int) ([]*x509.Certificate, error) {
	data, found, err := f.read(name)
	if err != nil || !found {
		return nil, err
	}
	certs, err := ParseCertificates(data, limit)
	if err != nil {
		return nil, f.problem(name, err)
	}
	return certs, nil
}
