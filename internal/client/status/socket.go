package status

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	// maxAnswer is more than any report takes.
	maxAnswer = 16 << 20
	// answerTime is how long one may take to be written and read.
	answerTime = 5 * time.Second
	// maxAsking is how many are answered at once; others wait.
	maxAsking = 4
	// maxPath is how long the path of a socket may be on the narrowest of systems.
	maxPath = 103
	ending  = ".sock"
)

// Socket is where reports are asked for.
type Socket struct {
	path   string
	listen *net.UnixListener
	made   os.FileInfo
	now    func() time.Time
}

// Listen opens a socket in a directory of the user's own, which is made if there is
// none, and takes away those there that nobody answers at any more.
func Listen(dir string, now func() time.Time) (*Socket, error) {
	if err := own(dir); err != nil {
		return nil, err
	}
	for _, path := range in(dir) {
		if stale(path) {
			_ = os.Remove(path)
		}
	}
	return ListenAt(filepath.Join(dir, strconv.Itoa(os.Getpid())+ending), now)
}

// ListenAt opens a socket with a path of one's own choice. It is made where nobody
// else gets to, and has its name once its mode is right.
func ListenAt(path string, now func() time.Time) (*Socket, error) {
	if !offered {
		return nil, ErrNotOffered
	}
	if err := free(path); err != nil {
		return nil, err
	}
	room, err := os.MkdirTemp(filepath.Dir(path), ".nk") // with mode 0700
	if err != nil {
		return nil, fmt.Errorf("the socket %s cannot be made: %w", path, err)
	}
	defer os.RemoveAll(room)
	made := filepath.Join(room, "s")
	if longest := max(len(path), len(made)); longest > maxPath {
		return nil, fmt.Errorf("the path of the socket %s is too long: systems take %d bytes; name a shorter one with --socket", path, maxPath-(longest-len(path)))
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("the socket %s cannot be made: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // it has another name by then
	s := &Socket{path: path, listen: l, now: now}
	if err = os.Chmod(made, 0o600); err == nil {
		if s.made, err = os.Lstat(made); err == nil {
			err = os.Rename(made, path)
		}
	}
	if err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("the socket %s cannot be made: %w", path, err)
	}
	return s, nil
}

// free says why a socket cannot have a path. One that nobody answers at makes room.
func free(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the socket %s cannot be made: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("the socket %s cannot be made: there is a file of that name, which is left alone; name another", path)
	case !stale(path):
		return fmt.Errorf("the socket %s cannot be made: somebody answers there already, another tunneler most likely; name another", path)
	}
	return nil
}

// stale reports whether nobody answers at a socket any more.
func stale(path string) bool {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err == nil {
		_ = conn.Close()
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Serve answers all who may ask until ctx ends, and takes the socket away.
func (s *Socket) Serve(ctx context.Context, report func() *Report) {
	defer s.Close()
	defer context.AfterFunc(ctx, func() { _ = s.listen.Close() })()
	room := make(chan struct{}, maxAsking)
	for {
		conn, err := s.listen.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no files are left, most likely
			select {
			case <-time.After(time.Second):
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			_ = conn.Close()
			return
		}
		go func() {
			defer func() { <-room }()
			defer conn.Close()
			s.answer(conn, report)
		}()
	}
}

// answer writes a report to who is the user itself, or root. Nothing is read: there
// is nothing to be said to a tunneler here.
func (s *Socket) answer(conn *net.UnixConn, report func() *Report) {
	if who, err := peer(conn); err != nil || who != os.Geteuid() && who != 0 {
		return
	}
	_ = conn.SetDeadline(s.now().Add(answerTime))
	r := report()
	r.trim()
	_ = json.MarshalWrite(conn, r)
}

// Close takes the socket away, if it is still ours.
func (s *Socket) Close() {
	_ = s.listen.Close()
	if info, err := os.Lstat(s.path); err == nil && os.SameFile(info, s.made) {
		_ = os.Remove(s.path)
	}
}

// ErrSilent says that nobody answers at a socket.
var ErrSilent = errors.New("nobody answers there: the tunneler has ended")

// Ask asks a tunneler how it stands.
func Ask(ctx context.Context, path string) (*Report, error) {
	if !offered {
		return nil, ErrNotOffered
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", path, ErrSilent)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: only the user that the tunneler runs as may ask it, and root: try with sudo", path)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	text, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: the tunneler does not answer within %s: %w", path, answerTime, err)
	case len(text) == 0:
		return nil, fmt.Errorf("%s: it is closed without an answer: only the user that the tunneler runs as may ask it, and root", path)
	}
	r := &Report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: what answers there is no tunneler of this version: %w", path, err)
	}
	return r, nil
}

// Find returns the sockets in directories.
func Find(dirs []string) (all []string) {
	for _, dir := range dirs {
		all = append(all, in(dir)...)
	}
	return all
}

// in are the sockets in a directory, in order.
func in(dir string) (all []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type() == fs.ModeSocket && strings.HasSuffix(e.Name(), ending) {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}
