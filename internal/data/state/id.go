package state

import (
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/lang/kind"
)

const (
	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	base36 = "0123456789abcdefghijklmnopqrstuvwxyz"
)

// NewID returns a random id of eleven letters and digits, 65 bits, for what is no record.
func NewID() string { return random(base62, 11) }

// How ids of records are made: what they begin with changes every idStep, and comes again
// after thirty years; the other letters are random, 41 bits.
const (
	idStamp = 4
	idStep  = 64 // seconds
)

// newRecordID returns an id of eleven letters and digits for a record that is made at a time.
// Ids of records that are made together begin alike, so that what is kept in the order of ids
// has them together too: a store that is opened files a million of them in a part of the
// time that it takes for ids from all over.
func newRecordID(now time.Time) string {
	id := make([]byte, idStamp, 11)
	for i, n := idStamp-1, now.Unix()/idStep; i >= 0; i, n = i-1, n/int64(len(base62)) {
		id[i] = base62[max(0, n)%int64(len(base62))]
	}
	return string(append(id, random(base62, cap(id)-idStamp)...))
}

// freeID returns an id that no record of a kind has.
func freeID(r kind.Reader, d *kind.Def, now time.Time) string {
	for {
		id := newRecordID(now)
		if _, taken := r.Lookup(d, id); !taken {
			return id
		}
	}
}

// FreeID returns an id for a record that somebody is about to make at a time.
func (s *State) FreeID(d *kind.Def, now time.Time) string { return freeID(s.Snapshot(), d, now) }

// newSessionID returns an id of 25 characters that starts with c and sorts by
// time.
func newSessionID(now time.Time) string {
	stamp := strconv.FormatInt(now.UnixMilli(), 36)
	return "c" + strings.Repeat("0", max(0, 9-len(stamp))) + stamp + random(base36, 15)
}

// random draws n characters of an alphabet without favouring any.
func random(alphabet string, n int) string {
	out := make([]byte, 0, n)
	limit := 256 - 256%len(alphabet)
	for buf := make([]byte, 2*n); ; {
		_, _ = rand.Read(buf) // never fails
		for _, b := range buf {
			if int(b) >= limit {
				continue
			}
			if out = append(out, alphabet[int(b)%len(alphabet)]); len(out) == n {
				return string(out)
			}
		}
	}
}
