package authn

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/crypto/argon2"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/ops/limit"
)

// cost is how much work a password hash takes.
type cost struct {
	memory  uint32 // KiB
	time    uint32
	threads uint8
}

// hashCost is what new hashes take: the floor that OWASP gives for Argon2id.
var hashCost = cost{memory: 19 * 1024, time: 2, threads: 1}

const (
	saltLen = 16
	keyLen  = 32
)

// Hasher hashes passwords. It lets only a few run at a time, so that a flood
// of them leaves memory and processors to everybody else, and those who wait
// take turns.
type Hasher struct {
	turns limit.Turns
	dummy string // a hash of nothing that anyone knows

	// Queued, if set, is called when a password begins to wait for its turn.
	// What it returns is called when the wait is over.
	Queued func() (over func())
}

// maxQueue is how many passwords wait at most. The last of them would wait for
// as long as a request may take; whoever comes after is better told at once.
const maxQueue = 128

// NewHasher returns a hasher that uses at most half of the processors.
func NewHasher() *Hasher {
	h := &Hasher{turns: limit.Turns{Max: max(1, runtime.GOMAXPROCS(0)/2), Queue: maxQueue}}
	h.dummy = encodeHash(hashCost, random(saltLen), random(keyLen))
	return h
}

// Claim is who wants a password hashed.
type Claim struct {
	Party limit.Party
	// Still, if set, is asked when the turn has come. With an error the
	// password is not hashed.
	Still func() error
}

// Hash returns the stored form of a password: parameters, salt and key.
func (h *Hasher) Hash(ctx context.Context, who Claim, password string) (string, error) {
	salt := random(saltLen)
	key, err := h.derive(ctx, who, hashCost, password, salt)
	if err != nil {
		return "", err
	}
	return encodeHash(hashCost, salt, key), nil
}

// Verify reports whether the password is the hashed one. An empty hash takes
// as long as any other and never matches.
func (h *Hasher) Verify(ctx context.Context, who Claim, hash, password string) (bool, error) {
	unknown := hash == ""
	if unknown {
		hash = h.dummy
	}
	c, salt, want, err := decodeHash(hash)
	if err != nil {
		return false, err
	}
	got, err := h.derive(ctx, who, c, password, salt)
	if err != nil {
		return false, err
	}
	return subtle.ConstantTimeCompare(got, want) == 1 && !unknown, nil
}

// Outdated reports whether a hash takes less work than new ones do.
func (h *Hasher) Outdated(hash string) bool {
	c, _, _, err := decodeHash(hash)
	return err == nil && (c.memory < hashCost.memory || c.time < hashCost.time || c.threads < hashCost.threads)
}

func (h *Hasher) derive(ctx context.Context, who Claim, c cost, password string, salt []byte) ([]byte, error) {
	done, err := h.wait(ctx, who.Party)
	if err != nil {
		return nil, err
	}
	defer done()
	if who.Still != nil {
		if err := who.Still(); err != nil {
			return nil, err
		}
	}
	return argon2.IDKey([]byte(password), salt, c.time, c.memory, c.threads, keyLen), nil
}

var errQueue = fault.New(fault.CodeUnavailable, "too many passwords wait to be checked; try again")

// wait takes a turn.
func (h *Hasher) wait(ctx context.Context, p limit.Party) (done func(), err error) {
	if h.Queued != nil {
		defer h.Queued()()
	}
	done, err = h.turns.Wait(ctx, p)
	switch {
	case errors.Is(err, limit.ErrFull):
		return nil, errQueue
	case err != nil:
		return nil, fmt.Errorf("waiting to hash a password: %w", err)
	}
	return done, nil
}

func encodeHash(c cost, salt, key []byte) string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.memory, c.time, c.threads, b64(salt), b64(key))
}

var errHash = errors.New("authn: a stored password hash is malformed")

// The most that a stored hash may ask for, so that a damaged one cannot take
// all memory.
const (
	maxMemory = 1 << 20 // KiB
	maxTime   = 100
)

// decodeHash reads what encodeHash wrote, and nothing else.
func decodeHash(s string) (c cost, salt, key []byte, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 6 {
		return c, nil, nil, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.memory, &c.time, &c.threads); err != nil {
		return c, nil, nil, errHash
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	key, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	switch {
	case err1 != nil, err2 != nil, len(key) != keyLen, encodeHash(c, salt, key) != s,
		c.time == 0, c.time > maxTime, c.memory > maxMemory, c.threads == 0:
		return c, nil, nil, errHash
	}
	return c, salt, key, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
