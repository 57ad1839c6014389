package zititest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// Put is a value to write into a database: where, under which key, and as it is stored.
type Put struct {
	Path  []string
	Key   string
	Value []byte
}

// Text is a text as it is stored.
func Text(s string) []byte { return append([]byte{5}, s...) }

// Time is a time as it is stored.
func Time(t testing.TB, at time.Time) []byte {
	t.Helper()
	b, err := at.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{6}, b...)
}

// Change writes values into the records of a database, and makes those that are not there.
func Change(t testing.TB, file string, values ...Put) {
	t.Helper()
	change(t, file, func(tx *bbolt.Tx) error {
		for _, p := range values {
			if err := p.write(tx); err != nil {
				return err
			}
		}
		return nil
	})
}

func change(t testing.TB, file string, write func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(write), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func (p Put) write(tx *bbolt.Tx) (err error) {
	at := tx.Bucket([]byte("ziti"))
	for _, name := range p.Path {
		if at, err = at.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return at.Put([]byte(p.Key), p.Value)
}

// perWrite is how many identities Grow writes at once.
const perWrite = 10_000

// Grow adds identities to the database that Unpack has put into a directory, each with a
// certificate of its own, an attribute and a tag. They are called "device" and a number.
func Grow(t testing.TB, dir string, n int) {
	t.Helper()
	g := newGrower(t, dir)
	for from := 0; from < n; from += perWrite {
		change(t, Database(dir), func(tx *bbolt.Tx) error {
			for i := from; i < min(n, from+perWrite); i++ {
				if err := g.add(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// grower makes certificates. One key does for all: nobody logs in with them.
type grower struct {
	ca, leaf *x509.Certificate
	key      *ecdsa.PrivateKey
	above    string // that follows each
	now      []byte
}

func newGrower(t testing.TB, dir string) *grower {
	t.Helper()
	g := &grower{ca: &x509.Certificate{Subject: pkix.Name{CommonName: "signs many"}}}
	var err error
	if g.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	stamp, err := now.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	g.now = append([]byte{6}, stamp...)
	g.leaf = &x509.Certificate{
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	above, err := os.ReadFile(filepath.Join(dir, "pki/intermediate-ca/certs/intermediate-ca.cert"))
	if err != nil {
		t.Fatal(err)
	}
	g.above = string(above)
	return g
}

// add adds an identity.
func (g *grower) add(tx *bbolt.Tx, i int) error {
	id := fmt.Sprintf("grown%06d", i)
	g.leaf.SerialNumber, g.leaf.Subject = big.NewInt(int64(i)+1), pkix.Name{CommonName: id, Organization: []string{"Grown"}}
	der, err := x509.CreateCertificate(rand.Reader, g.leaf, g.ca, g.key.Public(), g.key)
	if err != nil {
		return err
	}
	print := sha1.Sum(der)
	who, how := []string{"identities", id}, []string{"authenticators", "a" + id}
	for _, p := range []Put{
		{who, "name", Text("device " + id)},
		{who, "type", Text("Default")},
		{who, "authPolicyId", Text("default")},
		{who, "createdAt", g.now},
		{who, "updatedAt", g.now},
		{append(who, "roleAttributes"), string(Text(fmt.Sprintf("group-%d", i%500))), []byte{}},
		{append(who, "tags"), "site", Text(fmt.Sprint(i % 90))},
		{how, "method", Text("cert")},
		{how, "identity", Text(id)},
		{how, "isIssuedByNetwork", []byte{1, 1}},
		{how, "certFingerprint", Text(hex.EncodeToString(print[:]))},
		{how, "certPem", Text(string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) + g.above)},
		{how, "createdAt", g.now},
		{how, "updatedAt", g.now},
	} {
		if err := p.write(tx); err != nil {
			return err
		}
	}
	return nil
}
