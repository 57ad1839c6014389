// Package home is a router on a machine: the directory that it lives in with
// its settings, its key and certificates, how those are renewed, and what
// monitoring sees of it. What the router does is not its business. It must not
// import what a controller is made of.
package home

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/goccy/go-yaml"

	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/ops/config"
)

// Files of a router's directory.
const (
	settingsFile = "router.yml"
	papersFile   = "identity.json"
	pendingFile  = "identity.next.json" // certificates that the controller may or may not know us by yet
	listFile     = "controllers.json"   // that we were told of
	quietFile    = "stopped"            // we asked to be left alone, because we stopped
)

// Options of a Station.
type Options struct {
	Now func() time.Time
	Log *slog.Logger
	// Version, Revision and Built are of this program.
	Version, Revision, Built string
	// Over is what is said over the settings in the directory.
	Over config.Sources
	// Inside is said of a router that is part of another program.
	Inside *Inside
}

// Inside is what a program that a router is part of decides, in place of what
// the directory says.
type Inside struct {
	Settings    Settings
	Listener    net.Listener // of Settings.Listen
	Controllers []string
	ServerName  string // of the controllers' certificates
}

// Station is a router's directory, held by this process alone.
type Station struct {
	opt      Options
	dir      string
	settings Settings
	release  func() error

	mu      sync.Mutex
	papers  *papers
	pending *papers   // that may be the ones by now; nil if there are none
	since   time.Time // when it came to be open which of them are
	turn    bool      // whether they were tried last
}

// Open takes a router's directory, and reads and checks what is in it.
func Open(dir string, opt Options) (*Station, error) {
	if _, err := os.Stat(filepath.Join(dir, papersFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no router in %s: enroll one with netkeep router enroll TOKEN --data %s", dir, dir)
	}
	release, err := disk.Hold(dir)
	switch {
	case errors.Is(err, disk.ErrHeld):
		return nil, fmt.Errorf("the router in %s is running already; stop that one first", dir)
	case err != nil:
		return nil, fmt.Errorf("the router's directory: %w", err)
	}
	s := &Station{opt: opt, dir: dir, release: release}
	if err := s.load(); err != nil {
		_ = release()
		return nil, err
	}
	return s, nil
}

// load reads what is in the directory.
func (s *Station) load() (err error) {
	if in := s.opt.Inside; in != nil {
		s.settings, err = in.Settings, in.Settings.check()
	} else {
		s.settings, err = ReadSettings(s.dir, s.opt.Over)
	}
	if err != nil {
		return err
	}
	if s.papers, err = readPapers(s.path(papersFile)); err != nil {
		return err
	}
	s.pending, err = readPapers(s.path(pendingFile))
	if errors.Is(err, fs.ErrNotExist) {
		s.pending, err = nil, nil
	}
	if err == nil {
		err = s.inForce(s.opt.Now())
	}
	return err
}

// Close lets go of the directory.
func (s *Station) Close() error { return s.release() }

// Settings are those in the directory.
func (s *Station) Settings() Settings { return s.settings }

// heir are the papers that may be the ones by now.
func (s *Station) heir() disk.Heir {
	return disk.Heir{Path: s.path(pendingFile), Of: s.path(papersFile)}
}

func (s *Station) path(name string) string { return filepath.Join(s.dir, name) }

// maxFile bounds what is read of a router's files.
const maxFile = 1 << 20

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// ReadSettings reads the settings in a router's directory, and what other sources
// say over them.
func ReadSettings(dir string, over config.Sources) (Settings, error) {
	s := DefaultSettings()
	over.File = filepath.Join(dir, settingsFile)
	_, err := over.Over(config.Of(&s))
	if err == nil {
		s.Fill()
		err = s.check()
	}
	if err != nil {
		return s, fmt.Errorf("the router's settings: %w", err)
	}
	return s, nil
}

// write writes what people may change afterwards.
func (s Settings) write(to *disk.File) error {
	text, err := yaml.Marshal(s)
	if err != nil {
		return err
	}
	return to.Write(append([]byte(settingsHead), text...))
}

const settingsHead = `# Settings of a router; docs/routers.md says what they mean. They count from the
# next start on. Names in advertise are in its certificates: for others, enroll
# the router again.
`
