// Package zitidb reads the database of an OpenZiti controller, of versions 38 to 44 of
// its layout: what people put into it, and nothing that is computed from that. It owns how
// records are encoded there, and writes nothing. What becomes of the records is not its
// to say: it must not import anything of ours.
package zitidb

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The versions of the layout that are known. There is one for each release that changed
// something; between these two only fields were added.
const (
	Oldest = 38 // of OpenZiti 1.6.0
	Newest = 44 // of OpenZiti 2.0.3
)

// DB is a database that is open for reading.
type DB struct {
	Version int64
	// Index is the last entry of the log of several controllers that the file has; 0 if there
	// is one controller.
	Index int64

	tx *bbolt.Tx
	db *bbolt.DB
}

// ErrInUse says that a controller runs on the file.
var ErrInUse = errors.New("a controller has it open: stop the controller, or take a snapshot with `ziti edge db snapshot` and use that")

// lockWait is how long somebody else may have the file open.
const lockWait = time.Second

// Open opens a file that no controller has open.
func Open(file string) (_ *DB, err error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no database %s", file)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return nil, fmt.Errorf("%s is no database", file)
	}
	d := &DB{}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if err := safely(func() error { return d.open(file) }); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

func (d *DB) open(file string) (err error) {
	if d.db, err = bbolt.Open(file, 0o400, &bbolt.Options{ReadOnly: true, Timeout: lockWait}); err != nil {
		switch {
		case errors.Is(err, bolterrors.ErrTimeout):
			return ErrInUse
		case errors.Is(err, fs.ErrPermission):
			return err
		}
		return fmt.Errorf("it is no database of OpenZiti, or damaged: %w", err)
	}
	if d.tx, err = d.db.Begin(false); err != nil {
		return err
	}
	if err = checkPages(file, d.db, d.tx); err != nil {
		return err
	}
	return d.read()
}

// safely reads. Pages of a damaged file lead to where there are none, for which the engine
// has no errors.
func safely(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the file is damaged: %v", p)
		}
	}()
	return read()
}

// read looks what the file is.
func (d *DB) read() error {
	ziti := d.tx.Bucket([]byte("ziti"))
	if ziti == nil {
		return errors.New("it is no database of OpenZiti")
	}
	var about struct {
		Versions struct {
			Edge int64 `db:"edge"`
		} `db:"versions"`
		Metadata struct {
			Index int64 `db:"raftIndex"`
		} `db:"metadata"`
	}
	if err := decode(ziti, reflect.ValueOf(&about).Elem()); err != nil {
		return err
	}
	d.Version, d.Index = about.Versions.Edge, about.Metadata.Index
	switch v := d.Version; {
	case v == 0:
		return errors.New("it does not say of which version it is")
	case v < Oldest:
		return fmt.Errorf("it is of version %d, and versions %d to %d are known: start OpenZiti 1.6 on a copy of it once, which brings it up to date", v, Oldest, Newest)
	case v > Newest:
		return fmt.Errorf("it is of version %d, of an OpenZiti that is newer than this program knows; versions %d to %d are known", v, Oldest, Newest)
	}
	return nil
}

// Close lets go of the file.
func (d *DB) Close() {
	if d.tx != nil {
		_ = d.tx.Rollback()
	}
	if d.db != nil {
		_ = d.db.Close()
	}
}

// Store is where the records of a sort are.
type Store[T any] struct{ name string }

// The stores.
var (
	Identities                = Store[Identity]{"identities"}
	Authenticators            = Store[Authenticator]{"authenticators"}
	Enrollments               = Store[Enrollment]{"enrollments"}
	MFAs                      = Store[MFA]{"mfas"}
	AuthPolicies              = Store[AuthPolicy]{"authPolicies"}
	ExtJWTSigners             = Store[ExtJWTSigner]{"externalJwtSigners"}
	CAs                       = Store[CA]{"cas"}
	ConfigTypes               = Store[ConfigType]{"configTypes"}
	Configs                   = Store[Config]{"configs"}
	Services                  = Store[Service]{"services"}
	Routers                   = Store[Router]{"routers"}
	Terminators               = Store[Terminator]{"terminators"}
	ServicePolicies           = Store[ServicePolicy]{"servicePolicies"}
	EdgeRouterPolicies        = Store[EdgeRouterPolicy]{"edgeRouterPolicies"}
	ServiceEdgeRouterPolicies = Store[ServiceEdgeRouterPolicy]{"serviceEdgeRouterPolicies"}
	PostureChecks             = Store[PostureCheck]{"postureChecks"}
	Controllers               = Store[Controller]{"controllers"}
	APISessions               = Store[APISession]{"apiSessions"}
	SessionCertificates       = Store[SessionCertificate]{"apiSessionCertificates"}
	Sessions                  = Store[Session]{"sessions"}
)

// kinds are the types of the records of all stores.
var kinds = func() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, s := range []interface{ kind() (string, reflect.Type) }{
		Identities, Authenticators, Enrollments, MFAs, AuthPolicies, ExtJWTSigners, CAs, ConfigTypes, Configs, Services, Routers, Terminators,
		ServicePolicies, EdgeRouterPolicies, ServiceEdgeRouterPolicies, PostureChecks, Controllers, APISessions, SessionCertificates, Sessions,
	} {
		name, t := s.kind()
		all[name] = t
	}
	return all
}()

func (s Store[T]) kind() (string, reflect.Type) { return s.name, reflect.TypeFor[T]() }

// passing are buckets of what comes and goes with use, is the same everywhere, or is
// computed from the rest.
var passing = []string{
	"eventualEvents", "identityTypes", "postureCheckTypes", "revocations",
	"indexes", "metadata", "versions",
}

// bucket is where the records of a store are; nil if there are none.
func (d *DB) bucket(name string) *bbolt.Bucket {
	return d.tx.Bucket([]byte("ziti")).Bucket([]byte(name))
}

// All yields the records, by their ids. One that cannot be read ends them with an error
// that names it.
func (s Store[T]) All(d *DB) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		var all *bbolt.Bucket
		err := safely(func() error { all = d.bucket(s.name); return nil })
		if err != nil {
			yield(nil, fmt.Errorf("%s: %w", s.name, err))
		}
		if all == nil {
			return
		}
		c, step := all.Cursor(), (*bbolt.Cursor).First
		for {
			var id, v []byte
			rec := new(T)
			err := safely(func() error {
				if id, v = step(c); id == nil || v != nil {
					return nil // the end, or no record
				}
				any(rec).(interface{ identify(id string) }).identify(string(id))
				return decode(all.Bucket(id), reflect.ValueOf(rec).Elem())
			})
			step = (*bbolt.Cursor).Next
			switch {
			case err != nil:
				yield(nil, fmt.Errorf("%s/%s: %w", s.name, id, err))
				return
			case id == nil:
				return
			case v == nil && !yield(rec, nil):
				return
			}
		}
	}
}

// Len is how many records there are.
func (s Store[T]) Len(d *DB) (n int) {
	_ = safely(func() error {
		if all := d.bucket(s.name); all != nil {
			return all.ForEachBucket(func([]byte) error { n++; return nil })
		}
		return nil
	})
	return n
}

// Unknown are buckets and fields that this package does not know, each once: a release
// of OpenZiti that it was not made for has put them there.
func (d *DB) Unknown() []string {
	found := map[string]bool{}
	_ = safely(func() error { return d.unknown(found) })
	return slices.Sorted(maps.Keys(found))
}

func (d *DB) unknown(found map[string]bool) error {
	return d.tx.Bucket([]byte("ziti")).ForEach(func(k, _ []byte) error {
		name := string(k)
		t, known := kinds[name]
		switch {
		case known:
			all, keys := d.bucket(name), names(t)
			_ = all.ForEachBucket(func(id []byte) error {
				unknown(all.Bucket(id), t, keys, name, found)
				return nil
			})
		case !slices.Contains(passing, name):
			found[name] = true
		}
		return nil
	})
}

// unknown adds the keys of a record that its type does not know.
func unknown(b *bbolt.Bucket, t reflect.Type, known map[string]bool, path string, found map[string]bool) {
	_ = b.ForEach(func(k, _ []byte) error {
		if !known[string(k)] {
			found[path+"."+string(k)] = true
		}
		return nil
	})
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type.Kind() != reflect.Pointer || f.Type.Elem().Kind() != reflect.Struct || f.Type.Elem() == reflect.TypeFor[time.Time]() {
			continue
		}
		name := f.Tag.Get("db")
		if inner := b.Bucket([]byte(name)); inner != nil {
			unknown(inner, f.Type.Elem(), names(f.Type.Elem()), path+"."+name, found)
		}
	}
}
