// Command bench measures routers of our own beside the public ones, in one run
// on one machine: both under the same controller, driven by the same clients, the
// public SDK and our tunneler, one after the other and then again, so that what
// the machine does besides falls on both. Beside them, in the same run, stand a
// plain relay between two TLS connections and wireguard-go between two namespaces.
//
//	bench -netkeep FILE -ziti FILE [-rounds N] [-idle N]
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
)

func main() {
	logrus.SetLevel(logrus.FatalLevel) // the SDK's; what goes wrong comes back as an error
	var b bench
	flag.StringVar(&b.netkeep, "netkeep", "", "our program")
	flag.StringVar(&b.ziti, "ziti", "", "the public program")
	flag.IntVar(&b.rounds, "rounds", 3, "how often everything is measured")
	flag.IntVar(&b.idle, "idle", 10_000, "connections that do nothing")
	flag.Int64Var(&b.bytes, "bytes", 256<<20, "bytes of each transfer")
	name, with := flag.String("part", "", "what this process is, of those that the program starts itself"), flag.String("with", "", "what that is told")
	flag.Parse()
	if *name != "" {
		if err := part(*name, *with); err != nil {
			fmt.Fprintln(os.Stderr, *name+":", err)
			os.Exit(1)
		}
		return
	}
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is what is measured with what.
type bench struct {
	netkeep, ziti string
	rounds, idle  int
	bytes         int64
	net           *network
}

// side is one of the two: its routers, and who uses them.
type side struct {
	routers []*process
	clients []clients
	stops   []func()
}

// clients are of one kind, over one router and over two that are linked.
type clients struct {
	name     string
	one, two *pair
}

// figures are what was measured, by line and side, once a round.
type figures map[string]map[string][]float64

func (f figures) add(line, side string, v float64) {
	if f[line] == nil {
		f[line] = map[string][]float64{}
	}
	f[line][side] = append(f[line][side], v)
}

func (b *bench) run() error {
	if b.netkeep == "" || b.ziti == "" {
		return errors.New("both programs must be named")
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if b.net, err = start(dir, b.netkeep, b.ziti); err != nil {
		return err
	}
	defer b.net.stop()
	measured := figures{}
	defer measured.print() // also what was measured before something went wrong
	for round := range b.rounds {
		if err := b.beside(round, measured); err != nil {
			return err
		}
		for _, name := range []string{"ours", "theirs"} {
			fmt.Printf("round %d, %s\n", round+1, name)
			if err := b.measure(fmt.Sprintf("%s%d", name, round), name, measured); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// measure takes all figures of one side, with routers of its own that end
// afterwards.
func (b *bench) measure(word, name string, f figures) error {
	s, err := b.net.side(word, name == "ours")
	if err != nil {
		return err
	}
	defer s.stop()
	for _, c := range s.clients {
		if err := b.carry(c.name+", one router", c.one, name, f); err != nil {
			return err
		}
		if err := b.carry(c.name+", two linked", c.two, name, f); err != nil {
			return err
		}
		if err := b.crowd(c, name, f); err != nil {
			return err
		}
	}
	return b.idlers(s.clients[0], name, f)
}

// beside takes the figures of what stands beside. Without namespaces there is no
// WireGuard, and that is said.
func (b *bench) beside(round int, f figures) error {
	for _, other := range []struct {
		name string
		set  func(word string) (*pair, func(), error)
	}{{relayPart, b.net.relayed}, {wireguardPart, b.net.wireguarded}} {
		fmt.Printf("round %d, %s\n", round+1, other.name)
		p, stop, err := other.set(fmt.Sprint(other.name, round))
		if err == nil {
			err = b.aside(p, other.name, f)
			stop()
		}
		switch {
		case err != nil && other.name == wireguardPart:
			fmt.Println("*** NOT MEASURED: wireguard, which needs a right to make namespaces:", err)
		case err != nil:
			return fmt.Errorf("%s: %w", other.name, err)
		}
	}
	return nil
}

// aside measures one of them.
func (b *bench) aside(p *pair, name string, f figures) error {
	err := b.net.eventually(name+" carries", func() error {
		conn, err := p.get(1)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.carry(aside, p, name, f)
}

// aside is what lines begin with that are compared with those of routers.
const aside = "beside"

// carry measures what is carried, and how long it takes until that begins.
func (b *bench) carry(what string, p *pair, name string, f figures) error {
	for _, conns := range []int{1, 50} {
		line := fmt.Sprintf("%s, %d connection(s)", what, conns)
		cpu := p.cpu()
		took, err := p.transfer(conns, b.bytes)
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
		gib := float64(b.bytes) / (1 << 30)
		f.add(line+": MiB/s", name, gib*1024/took.Seconds())
		f.add(line+": CPU s/GiB of the routers", name, (p.cpu()-cpu).Seconds()/gib)
	}
	times, err := p.dials(300, 1)
	if err != nil {
		return fmt.Errorf("%s, dials: %w", what, err)
	}
	slices.Sort(times)
	f.add(what+": dial to first byte p50 ms", name, ms(times[len(times)/2]))
	f.add(what+": dial to first byte p99 ms", name, ms(times[len(times)*99/100]))
	return nil
}

// crowd measures many dials at once.
func (b *bench) crowd(c clients, name string, f figures) error {
	const many = 2000
	cpu, began := c.one.cpu(), time.Now()
	if _, err := c.one.dials(many, 64); err != nil {
		return fmt.Errorf("%s, 64 dials at once: %w", c.name, err)
	}
	f.add(c.name+": dials a second, 64 at once", name, many/time.Since(began).Seconds())
	f.add(c.name+": CPU ms a dial of the router", name, ms(c.one.cpu()-cpu)/many)
	return nil
}

// idlers measures many connections that do nothing.
func (b *bench) idlers(c clients, name string, f figures) error {
	before := c.one.memory()
	release, err := c.one.hold(b.idle)
	if err != nil {
		return fmt.Errorf("%s, idle connections: %w", c.name, err)
	}
	defer release()
	f.add(fmt.Sprintf("%s: KiB of the router an idle connection, %d of them", c.name, b.idle), name, float64(c.one.memory()-before)/1024/float64(b.idle))
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// print shows the middle of each figure, and how ours relates to theirs.
func (f figures) print() {
	lines := make([]string, 0, len(f))
	for line := range f {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	fmt.Printf("\n%-66s %10s %10s %8s %10s %8s %10s %8s\n", "", "ours", "theirs", "ratio", "relay", "ratio", "wireguard", "ratio")
	for _, line := range lines {
		if strings.HasPrefix(line, aside) {
			continue
		}
		ours, theirs := middle(f[line]["ours"]), middle(f[line]["theirs"])
		better := "more is better"
		if !strings.HasSuffix(line, "MiB/s") && !strings.Contains(line, ": dials") {
			better = "less is better"
		}
		fmt.Printf("%-66s %10.2f %10.2f %8.2f", line, ours, theirs, ours/theirs)
		for _, name := range []string{relayPart, wireguardPart} {
			if at := middle(f[besides(line)][name]); !math.IsNaN(at) {
				fmt.Printf(" %10.2f %8.2f", at, ours/at)
			} else {
				fmt.Printf(" %10s %8s", "", "")
			}
		}
		fmt.Println("  ", better)
	}
}

// besides is the line of what stands beside that one of routers is compared with.
func besides(line string) string {
	for _, over := range []string{", one router", ", two linked"} {
		if _, what, ok := strings.Cut(line, over); ok {
			return aside + what
		}
	}
	return ""
}

func middle(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[len(sorted)/2]
}
