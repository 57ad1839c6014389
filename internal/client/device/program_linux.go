package device

import (
	"crypto/sha512"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// maxHashed is how large a program may be that is hashed.
const maxHashed = 1 << 30

// Programs looks which programs run, by the paths of their files. Files are read
// again only when they have changed.
type Programs struct {
	mu     sync.Mutex
	hashed map[string]hashed
}

// hashed is what a file was when it was read.
type hashed struct {
	size int64
	at   time.Time
	hash string
}

// Look returns what there is to say of programs. Those of other users can be
// seen only by who may do anything.
func (p *Programs) Look(paths []string) map[string]Program {
	if len(paths) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found, running := make(map[string]Program, len(paths)), runningPrograms()
	kept := map[string]hashed{}
	for _, path := range paths {
		if file, err := filepath.EvalSymlinks(path); err == nil && running[file] {
			kept[file] = p.hash(file)
			found[path] = Program{Running: true, Hash: kept[file].hash}
		}
	}
	p.hashed = kept
	return found
}

// runningPrograms are the files that processes were started from.
func runningPrograms() map[string]bool {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	running := make(map[string]bool, len(links))
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil {
			running[file] = true
		}
	}
	return running
}

// hash returns what is known of a file, or reads it.
func (p *Programs) hash(path string) hashed {
	f, err := os.Open(path)
	if err != nil {
		return hashed{}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxHashed {
		return hashed{}
	}
	if was := p.hashed[path]; was.hash != "" && was.size == info.Size() && was.at.Equal(info.ModTime()) {
		return was
	}
	sum := sha512.New()
	if _, err := io.Copy(sum, io.LimitReader(f, maxHashed)); err != nil {
		return hashed{}
	}
	return hashed{info.Size(), info.ModTime(), hex.EncodeToString(sum.Sum(nil))}
}
