package composed

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// house is where services live.
type house struct {
	t         *testing.T
	dir, root string
	image     v1.Config
	hosts     []string // names, by the last number of their addresses
	running   map[string]*exec.Cmd
}

// setUp unpacks the image, and makes a network with a name for every service.
func setUp(t *testing.T, image string) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), running: map[string]*exec.Cmd{}}
	h.root = filepath.Join(h.dir, "root")
	h.unpack(image)
	h.command("mount", "-t", "tmpfs", "none", "/run")
	h.command("ip", "link", "add", "bridge", "type", "bridge")
	h.command("ip", "link", "set", "bridge", "up")
	h.hosts = append(slices.Sorted(maps.Keys(h.project(nil).Services)), "outside")
	lines := "127.0.0.1 localhost\n"
	for n, name := range h.hosts {
		h.command("ip", "netns", "add", name)
		h.command("ip", "link", "add", fmt.Sprint("end", n), "type", "veth", "peer", "name", "eth0", "netns", name)
		h.command("ip", "link", "set", fmt.Sprint("end", n), "master", "bridge", "up")
		h.command("ip", "-n", name, "addr", "add", fmt.Sprintf("10.9.0.%d/24", n+1), "dev", "eth0")
		h.command("ip", "-n", name, "link", "set", "eth0", "up")
		h.command("ip", "-n", name, "link", "set", "lo", "up")
		lines += fmt.Sprintf("10.9.0.%d %s\n", n+1, name)
	}
	if err := os.WriteFile(filepath.Join(h.root, "etc", "hosts"), []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(h.root, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, cmd := range h.running {
			cmd.Process.Kill()
			cmd.Wait()
		}
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(h.dir, "*.log"))
			for _, path := range logs {
				text, _ := os.ReadFile(path)
				t.Logf("%s:\n%s", filepath.Base(path), text[max(0, len(text)-3000):])
			}
		}
	})
	return h
}

func (h *house) unpack(image string) {
	h.t.Helper()
	at := filepath.Join(h.dir, "layout")
	for _, dir := range []string{at, h.root} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	h.command("tar", "-C", at, "-xf", image)
	path, err := layout.FromPath(at)
	if err != nil {
		h.t.Fatal(err)
	}
	found, err := partial.FindImages(indexIn(h.t, path), match.Platforms(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil || len(found) != 1 {
		h.t.Fatalf("there are %d images for this machine, %v", len(found), err)
	}
	img := found[0]
	conf, err := img.ConfigFile()
	if err != nil {
		h.t.Fatal(err)
	}
	h.image = conf.Config
	layers, err := img.Layers()
	if err != nil {
		h.t.Fatal(err)
	}
	for _, l := range layers {
		text, err := l.Uncompressed()
		if err != nil {
			h.t.Fatal(err)
		}
		unpack := exec.Command("tar", "-C", h.root, "-xf", "-")
		unpack.Stdin = text
		if said, err := unpack.CombinedOutput(); err != nil {
			h.t.Fatalf("%v\n%s", err, said)
		}
	}
}

// indexIn is the one thing that a layout names.
func indexIn(t *testing.T, path layout.Path) v1.ImageIndex {
	t.Helper()
	top, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	list, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	index, err := top.ImageIndex(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// project is the compose file, as it is read with some variables.
func (h *house) project(env map[string]string) *types.Project {
	h.t.Helper()
	given := []string{"NETKEEP_ADMIN_PASSWORD=secret"}
	for key, value := range env {
		given = append(given, key+"="+value)
	}
	opt, err := cli.NewProjectOptions([]string{filepath.Join("..", "..", "deploy", "compose", "compose.yaml")}, cli.WithEnv(given), cli.WithProfiles([]string{"*"}))
	if err != nil {
		h.t.Fatal(err)
	}
	project, err := opt.LoadProject(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return project
}

func (h *house) command(name string, args ...string) {
	h.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		h.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// volume is what a service keeps.
func (h *house) volume(name string) string { return filepath.Join(h.dir, "volume-"+name) }

// enter makes the root that a container sees, and leaves everything else behind.
const enter = `set -e
root=$1 volume=$2; shift 2
mount --bind "$root" "$root"
mount --bind "$volume" "$root/data"
mount -t tmpfs none "$root/tmp"
mount -o remount,ro,bind "$root"
exec setpriv --no-new-privs env -i "$@"`

// container is a program in the place of a service: on a root that is read-only, as the
// image's user, with nothing to write but the volume.
func (h *house) container(name string, env map[string]string, program []string) *exec.Cmd {
	h.t.Helper()
	volume, given := name, slices.Clone(h.image.Env)
	if s, is := h.project(env).Services[name]; is {
		volume = s.Volumes[0].Source
		if !s.ReadOnly || s.Volumes[0].Target != "/data" {
			h.t.Fatalf("%s is another container than this makes", name)
		}
		for key, value := range s.Environment {
			given = append(given, key+"="+*value)
		}
	}
	if err := os.MkdirAll(h.volume(volume), 0o700); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chown(h.volume(volume), 65532, 65532); err != nil {
		h.t.Fatal(err)
	}
	chroot, err := exec.LookPath("chroot")
	if err != nil {
		h.t.Fatal(err)
	}
	all := []string{"netns", "exec", name, "unshare", "--mount", "sh", "-c", enter, "sh", h.root, h.volume(volume)}
	all = append(append(all, given...), chroot, "--userspec="+h.image.User, h.root)
	return exec.Command("ip", append(all, program...)...)
}

// spawn starts a program whose log is kept for when something goes wrong.
func (h *house) spawn(name, as string, env map[string]string, program []string) {
	h.t.Helper()
	log, err := os.OpenFile(filepath.Join(h.dir, as+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	cmd := h.container(name, env, program)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.running[as] = cmd
}

// start starts services, and waits until they say that they are well.
func (h *house) start(env map[string]string, names ...string) {
	h.t.Helper()
	all := h.project(env).Services
	for _, name := range names {
		h.spawn(name, name, env, append(slices.Clone(h.image.Entrypoint), all[name].Command...))
	}
	for _, name := range names {
		test := h.image.Healthcheck.Test
		if own := all[name].HealthCheck; own != nil {
			test = own.Test
		}
		h.until(name+" being well", func() bool { return h.container(name, env, test[1:]).Run() == nil })
	}
}

// run has a service end, as one does that others wait for.
func (h *house) run(name string, env map[string]string) {
	h.t.Helper()
	program := append(slices.Clone(h.image.Entrypoint), h.project(env).Services[name].Command...)
	if out, err := h.container(name, env, program).CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// exec is docker compose exec: what it prints.
func (h *house) exec(name, in string, args ...string) string {
	h.t.Helper()
	cmd := h.container(name, nil, append([]string{"netkeep"}, args...))
	cmd.Stdin = strings.NewReader(in)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("%s: netkeep %s: %v\n%s%s", name, strings.Join(args, " "), err, out, said.String())
	}
	return strings.TrimSpace(string(out))
}
