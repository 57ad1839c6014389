package resolver

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// conf is what a resolv.conf says.
type conf struct {
	servers []netip.Addr
	rest    []string // lines about anything else that means something
}

// isStub reports whether a server is systemd-resolved's own.
func isStub(ip netip.Addr) bool {
	return ip == netip.AddrFrom4([4]byte{127, 0, 0, 53}) || ip == netip.AddrFrom4([4]byte{127, 0, 0, 54})
}

// read understands a resolv.conf, as the C library does: what it does not
// understand it passes over.
func read(text []byte) (c conf) {
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 2 || strings.ContainsAny(line[:1], "#; \t") {
			continue
		}
		if words[0] != "nameserver" {
			c.rest = append(c.rest, strings.TrimSpace(line))
			continue
		}
		if ip, err := netip.ParseAddr(words[1]); err == nil {
			c.servers = append(c.servers, ip.Unmap())
		}
	}
	return c
}

// How a file came to its place, which decides how the one before comes back.
const (
	replaced = "replaced" // the one before has another name
	inPlace  = "in place" // and was copied, since it could not get one
	fresh    = "fresh"    // there was none
)

// backup is the name of what was before.
func backup(path string) string { return path + ".before-netkeep" }

const (
	opening = "# Written by netkeep's tunneler ("
	sumSize = 8
	// maxServers is how many servers the C library asks.
	maxServers = 3
)

// compose is our resolv.conf in the place of another: our server is the first,
// and those before come after it if they are asked only when it does not answer.
// Lines about anything else stay.
func compose(how, path string, before conf, server netip.Addr, alone bool) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "nameserver %s\n", server)
	if !alone {
		others := slices.DeleteFunc(slices.Clone(before.servers), func(ip netip.Addr) bool { return ip == server })
		for _, ip := range others[:min(len(others), maxServers-1)] {
			fmt.Fprintf(&b, "nameserver %s\n", ip)
		}
	}
	for _, line := range before.rest {
		words := strings.Fields(line)
		if words[0] == "options" { // to ask servers in turn would be to ask others for our names
			words = slices.DeleteFunc(words, func(word string) bool { return word == "rotate" })
			if line = strings.Join(words, " "); len(words) == 1 {
				continue
			}
		}
		b.WriteString(line + "\n")
	}
	what := "there was no such file before, and there is none when the tunneler ends."
	if how != fresh {
		what = "what was here before is in " + filepath.Base(backup(path)) + ", and comes back when the tunneler ends."
	}
	return []byte(fmt.Sprintf("%s%s, %s): %s\n", opening, how, sum(b.String()), what) + b.String())
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])[:sumSize]
}

// written tells how a resolv.conf of ours came to its place, and whether it is
// as it was written; how is empty if it is not ours.
func written(text []byte) (how string, whole bool) {
	first, rest, _ := strings.Cut(string(text), "\n")
	inner, ok := strings.CutPrefix(first, opening)
	if !ok {
		return "", false
	}
	inner, _, _ = strings.Cut(inner, ")")
	how, digest, _ := strings.Cut(inner, ", ")
	return how, digest == sum(rest)
}
