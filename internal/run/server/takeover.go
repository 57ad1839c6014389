package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"netkeep.internal/internal/data/owner"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/disk"
	"netkeep.internal/internal/fabric/roster"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/clock"
	"netkeep.internal/internal/ops/config"
	"netkeep.internal/internal/ops/metrics"
	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/takeover"
	"netkeep.internal/internal/takeover/ziticonf"
	"netkeep.internal/internal/takeover/zitidb"
)

// Takeover is how a network of an OpenZiti controller is taken over.
type Takeover struct {
	Config   string // the settings of that controller
	Dir      string // that it was started in; where the settings are if empty
	Database string // in place of the one that they name, if not empty
	Data     string // the data directory to make
	Plan     bool   // only say what would be done
	LeaveOut bool   // do without records that cannot be taken

	Progress func(done, all int)
	Log      *slog.Logger
}

// TakeoverReport says what was taken, TakeoverLeft what was not, and TakeoverNote what to
// know.
type (
	TakeoverReport = takeover.Report
	TakeoverLeft   = takeover.Left
	TakeoverNote   = takeover.Note
)

// ErrTakeoverLeft tells of a takeover that could not delete what it had made.
var ErrTakeoverLeft = errors.New("delete what is left of the takeover: there are keys of the network in it")

// takeoverSettings is the file of settings in the new data directory.
const takeoverSettings = "netkeep.yaml"

// TakeOver makes a data directory of what an OpenZiti controller had, whole or not at all. It
// only reads what that has. With Plan the directory is made elsewhere and not kept, so that the
// report is of what would happen.
func TakeOver(ctx context.Context, t Takeover) (*TakeoverReport, error) {
	if err := t.checkNew(); err != nil {
		return nil, err
	}
	settings, err := ziticonf.Read(t.Config, t.Dir)
	if err != nil {
		return nil, err
	}
	if t.Database != "" {
		settings.Database = t.Database
	}
	db, err := zitidb.Open(settings.Database)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	network, err := takeover.Read(db, settings, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", settings.Database, err)
	}
	if err := network.Keys().Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", t.Config, err)
	}
	if !roster.ValidID(settings.ID) {
		network.RenameController()
	}
	cfg, err := settingsOf(settings, t.Data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Config, err)
	}
	if err := ctx.Err(); err != nil { // asked to end while all was read
		return nil, err
	}
	return &network.Report, t.build(ctx, network, cfg)
}

// checkNew refuses a data directory in which there is something.
func (t Takeover) checkNew() error {
	entries, err := os.ReadDir(t.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist) || t.Plan:
		return nil
	case err != nil:
		return fmt.Errorf("data directory: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("data directory %s is not empty; take the network over into a new one with --data", t.Data)
	}
	return nil
}

// build makes the directory under another name, under which nothing serves it, and gives
// it its own when all is done.
func (t Takeover) build(ctx context.Context, network *takeover.Network, cfg config.Config) (err error) {
	parent, name := filepath.Split(filepath.Clean(cfg.Data))
	if t.Plan {
		parent = os.TempDir()
	} else if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	halves := "." + name + ".half-*"
	t.tellLeft(parent, halves)
	half, err := os.MkdirTemp(parent, halves)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	defer func() { // which is gone by then if all went well
		if bad := os.RemoveAll(half); bad != nil {
			err = errors.Join(err, fmt.Errorf("%w: %w", ErrTakeoverLeft, bad))
		}
	}()
	if err := errors.Join(os.WriteFile(filepath.Join(half, unfinishedFile), nil, 0o600), disk.Sync(half)); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := t.fill(ctx, half, network, cfg); err != nil {
		return err
	}
	if refused := len(network.Report.Refused); t.Plan || refused > 0 && !t.LeaveOut {
		if !t.Plan {
			err = fmt.Errorf("%d of the records cannot be taken, the first is %s/%s: --plan shows all, and --leave-out does without them", refused, network.Report.Refused[0].Kind, network.Report.Refused[0].ID)
		}
		return err
	}
	if err := writeSettings(filepath.Join(half, takeoverSettings), network.Settings.ID, cfg); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(filepath.Join(half, unfinishedFile)), disk.Sync(half)); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.Remove(cfg.Data); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.Rename(half, cfg.Data); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return disk.Sync(parent)
}

// unfinishedFile is in a data directory that is being made, and nothing is served from one
// that has it.
const unfinishedFile = "unfinished"

// finished refuses a directory that a takeover was to fill and did not.
func (d *dir) finished() error {
	_, err := os.Lstat(d.sub(unfinishedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("data directory %s is what a takeover left that was cut short: delete it, and take the network over again", d.path))
}

// tellLeft names what takeovers left that were cut short: there are keys in it.
func (t Takeover) tellLeft(parent, halves string) {
	left, _ := filepath.Glob(filepath.Join(parent, halves)) // a pattern that is none finds nothing
	for _, half := range left {
		t.Log.Warn("this is left of a takeover that was cut short, and has keys of the network in it: delete it unless another takeover is at work", "directory", half)
	}
}

// fill puts keys and records into a data directory.
func (t Takeover) fill(ctx context.Context, data string, network *takeover.Network, cfg config.Config) (err error) {
	keys := filepath.Join(data, keysDir)
	if err := pki.Adopt(keys, network.Keys(), time.Now()); err != nil {
		return err
	}
	cfg.Data = data
	// What the engine says of a full disk, say, is said again by the error that it ends with.
	quiet := slog.New(slog.DiscardHandler)
	s := &Server{cfg: cfg, log: quiet, clock: clock.New(time.Now), figures: metrics.New(time.Now), failed: make(chan error, 1)}
	defer func() { err = errors.Join(err, s.close()) }()
	if s.dir, err = openDir(data); err != nil {
		return err
	}
	s.onClose(s.dir.close)
	id := network.Settings.ID
	if roster.ValidID(id) {
		if err := s.dir.note(controllerFile, id); err != nil {
			return err
		}
	}
	// A new store is made in a moment. To be asked to end meanwhile would leave it to be made
	// by itself, while its files are deleted.
	if err := s.openStore(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	dns, ips := split(cfg.Names)
	if err := s.openKeystore(pki.Options{Now: time.Now, DNSNames: dns, IPs: ips, Algorithm: pki.Algorithm(cfg.Keys.Algorithm), Log: quiet}); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if roster.ValidID(id) {
		if err := owner.NameFirst(ctx, s.store, id, time.Now()); err != nil {
			return err
		}
	}
	return t.fillState(ctx, s, network)
}

// fillState writes the records. Nobody judges them and no entries tell of them: what was
// before is not ours to tell.
func (t Takeover) fillState(ctx context.Context, s *Server, network *takeover.Network) error {
	st, err := state.Open(ctx, s.store, model.All, state.Options{Logger: s.log, Now: s.clock.Now, Seal: s.sealer, Patience: takeoverPatience})
	if err != nil {
		return err
	}
	defer st.Close()
	if err := st.Update(ctx, state.Program("takeover"), func(tx *state.Tx) error { return model.Seed(tx) }); err != nil {
		return fmt.Errorf("add the built-in records: %w", err)
	}
	progress := t.Progress
	if progress == nil {
		progress = func(int, int) {}
	}
	return network.Fill(ctx, st, progress)
}

// takeoverPatience is how long one write of many may take.
const takeoverPatience = 5 * time.Minute

// split tells names from addresses.
func split(hosts []string) (dns []string, ips []net.IP) {
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			ips = append(ips, ip)
		} else {
			dns = append(dns, host)
		}
	}
	return dns, ips
}

// settingsOf is the settings of a controller that goes on where the old one was.
func settingsOf(s *ziticonf.Settings, data string) (cfg config.Config, err error) {
	cfg = config.Default()
	if cfg.Data, err = filepath.Abs(data); err != nil {
		return cfg, err
	}
	cfg.Listen, cfg.Advertise = s.Client.Listen, s.Client.Advertise
	if s.Management.Listen != s.Client.Listen {
		cfg.Management.Listen, cfg.Management.Advertise = s.Management.Listen, s.Management.Advertise
	}
	if s.Routers.Listen != s.Client.Listen {
		cfg.Routers.Listen, cfg.Routers.Advertise = s.Routers.Listen, s.Routers.Advertise
	}
	cfg.Names = slices.Clone(s.DNSNames)
	for _, ip := range s.IPs {
		cfg.Names = append(cfg.Names, ip.String())
	}
	cfg.Names = slices.DeleteFunc(cfg.Names, func(host string) bool { return !pki.ValidName(host) })
	if s.SessionTimeout >= time.Minute {
		cfg.Session.Timeout = s.SessionTimeout
	}
	return cfg, cfg.Check()
}

// writeSettings writes those of the settings that are not as they are anyway.
func writeSettings(file, id string, cfg config.Config) error {
	head := fmt.Sprintf("# Settings of the controller that was %q of OpenZiti:\n#   netkeep run --config %s\n", id, filepath.Join(cfg.Data, takeoverSettings))
	text := bytes.NewBufferString(head)
	if err := cfg.PrintGiven(text); err != nil {
		return err
	}
	f, err := disk.NewFile(file, false)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	defer f.Close()
	return f.Write(text.Bytes())
}
