package zitidb_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netkeep.internal/internal/takeover/zitidb"
	"netkeep.internal/test/zititest"
)

var (
	damages    = flag.Int("damages", 200, "how often to damage a database")
	damageSeed = flag.Uint64("damage-seed", 0, "seed of the random damages; 0 takes one from the clock")
)

// everything reads all that is in a database, and returns why not.
func everything(file string) error {
	d, err := zitidb.Open(file)
	if err != nil {
		return err
	}
	defer d.Close()
	d.Unknown()
	return errors.Join(
		readable(d, zitidb.Identities), readable(d, zitidb.Authenticators), readable(d, zitidb.Enrollments), readable(d, zitidb.MFAs),
		readable(d, zitidb.AuthPolicies), readable(d, zitidb.ExtJWTSigners), readable(d, zitidb.CAs), readable(d, zitidb.ConfigTypes),
		readable(d, zitidb.Configs), readable(d, zitidb.Services), readable(d, zitidb.Routers), readable(d, zitidb.Terminators),
		readable(d, zitidb.ServicePolicies), readable(d, zitidb.EdgeRouterPolicies), readable(d, zitidb.ServiceEdgeRouterPolicies),
		readable(d, zitidb.PostureChecks), readable(d, zitidb.Controllers),
		readable(d, zitidb.APISessions), readable(d, zitidb.SessionCertificates), readable(d, zitidb.Sessions),
	)
}

func readable[T any](d *zitidb.DB, s zitidb.Store[T]) error {
	n := 0
	for rec, err := range s.All(d) {
		if (rec == nil) == (err == nil) {
			return fmt.Errorf("%v comes with %w", rec, err)
		}
		if err != nil {
			return err
		}
		n++
	}
	if got := s.Len(d); got != n {
		return fmt.Errorf("there are %d records and %d were read", got, n)
	}
	return nil
}

// pageSize is that of the databases here.
const pageSize = 1024

// damage is a copy of a database in which something is not as it was.
func damage(r *rand.Rand, whole []byte) (text []byte, what string) {
	text = slices.Clone(whole)
	pages := len(whole) / pageSize
	page := func() []byte { i := r.IntN(pages); return text[i*pageSize : (i+1)*pageSize] }
	switch r.IntN(6) {
	case 0:
		n := r.IntN(len(text))
		return text[:n], fmt.Sprintf("cut after %d bytes", n)
	case 1:
		copy(page(), page())
		return text, "a page in place of another"
	case 2:
		a, b := page(), page()
		swap := slices.Clone(a)
		copy(a, b)
		copy(b, swap)
		return text, "two pages in each other's place"
	case 3:
		clear(page())
		return text, "a page of zeros"
	case 4: // heads of pages say what leads on
		head := page()[:64]
		head[r.IntN(len(head))] ^= byte(1 + r.IntN(255))
		return text, "another head of a page"
	default:
		at := r.IntN(len(text))
		text[at] ^= byte(1 + r.IntN(255))
		return text, fmt.Sprintf("another byte at %d", at)
	}
}

// TestDamages reads databases that are damaged at random: it ends, and says what is wrong in
// a sentence if it finds that something is.
func TestDamages(t *testing.T) {
	seed := *damageSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with -damage-seed=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	outcomes := map[bool]int{}
	for _, version := range zititest.Versions {
		whole, err := os.ReadFile(zititest.Database(zititest.Unpack(t, version)))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "damaged.db")
		for range *damages / len(zititest.Versions) {
			text, what := damage(r, whole)
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			err := everything(file)
			if err != nil && (strings.Contains(err.Error(), "runtime error") || len(strings.Split(err.Error(), "\n")) > 17) {
				t.Errorf("%s: it says %v", what, err)
			}
			outcomes[err == nil]++
		}
	}
	if outcomes[false] == 0 {
		t.Error("no damage was found")
	}
	t.Logf("%d damages were found, and %d are in what is not read or reads as well", outcomes[false], outcomes[true])
}

// TestPagesInACircle has a page lead back to where it was reached from, which the engine would
// follow until there is no memory left, and others lead to each other's.
func TestPagesInACircle(t *testing.T) {
	whole, err := os.ReadFile(zititest.Database(zititest.Unpack(t, "1.6.0")))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "circle.db")
	circles := 0
	for at := 2 * pageSize; at < len(whole); at += pageSize {
		if whole[at+8] != 1 || whole[at+10] == 0 { // no branch
			continue
		}
		text := slices.Clone(whole)
		copy(text[at+16+8:at+16+16], whole[at:at+8]) // its first page is itself
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := everything(file); err != nil {
			if !strings.Contains(err.Error(), "has two places") {
				t.Errorf("page %d leads to itself: it says %v", at/pageSize, err)
			}
			circles++
		}
	}
	if circles == 0 {
		t.Error("no circle was found")
	}
}
