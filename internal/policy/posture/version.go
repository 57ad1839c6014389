package posture

import (
	"strconv"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"
)

// ranges reads the version ranges of checks, each once.
type ranges struct {
	mu     sync.RWMutex
	parsed map[string]*semver.Constraints // nil for what is no range
}

// maxRanges is how many are remembered. There are as many as checks name, and
// those that checks named once; with more than this all are read again.
const maxRanges = 1024

// parse returns the range that a text stands for; nil if it is none.
func (r *ranges) parse(text string) *semver.Constraints {
	r.mu.RLock()
	parsed, known := r.parsed[text]
	r.mu.RUnlock()
	if known {
		return parsed
	}
	parsed, err := semver.NewConstraint(text)
	if err != nil {
		parsed = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parsed == nil || len(r.parsed) >= maxRanges {
		r.parsed = map[string]*semver.Constraints{}
	}
	r.parsed[text] = parsed
	return parsed
}

// known are the ranges that were read.
var known ranges

// within returns what reports whether a range holds a version; nil is in none.
func within(v *semver.Version) func(text string) bool {
	return func(text string) bool {
		if v == nil {
			return false
		}
		parsed := known.parse(text)
		return parsed != nil && parsed.Check(v)
	}
}

// parseVersion reads up to three numbers with dots between them, after an
// optional v; those that are missing are 0. It ignores whatever follows: in
// 5.4.0-42-generic or 10.0.19041.388 that is the build of a vendor, and not a
// prerelease, which ranges would leave out. It returns nil for a text that
// starts with no number.
func parseVersion(text string) *semver.Version {
	text = strings.TrimPrefix(strings.TrimSpace(text), "v")
	var parts [3]uint64
	for i := range parts {
		digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
		if digits == "" && i > 0 {
			break
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return nil
		}
		parts[i] = n
		rest, more := strings.CutPrefix(text[len(digits):], ".")
		if !more {
			break
		}
		text = rest
	}
	return semver.New(parts[0], parts[1], parts[2], "", "")
}
