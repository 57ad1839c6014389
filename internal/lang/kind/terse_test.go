package kind_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"reflect"
	"testing"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/terse"
)

// badge holds a certificate in few bytes, and pass is the same as it was before.
type badge struct {
	kind.Meta

	Method string     `json:"method" kind:"enum=none|cert"`
	Cert   terse.Text `json:"cert" kind:"server,omit,when=method:cert"`
	Next   terse.Text `json:"next" kind:"server,hidden,nofilter"`
}

type pass struct {
	kind.Meta

	Method string `json:"method" kind:"enum=none|cert"`
	Cert   string `json:"cert" kind:"server,omit,when=method:cert"`
	Next   string `json:"next" kind:"server,hidden,nofilter"`
}

var (
	badges = kind.Define(kind.Spec[badge]{Name: "badge", Path: "badges", Doc: "A badge."})
	passes = kind.Define(kind.Spec[pass]{Name: "badge", Path: "badges", Doc: "A badge."})
)

// papers are texts that a badge may hold, the first two certificates of one issuer.
func papers(t *testing.T) []string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for n := range 2 {
		c := &x509.Certificate{SerialNumber: big.NewInt(int64(n + 1)), Subject: pkix.Name{CommonName: "subject"}}
		der, err := x509.CreateCertificate(rand.Reader, c, &x509.Certificate{Subject: pkix.Name{CommonName: "issuer"}}, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	}
	return append(all, all[0]+all[1], "", "é \"quoted\"\u2028")
}

// TestTerse shows that a field in few bytes is stored, read, shown, compared and found as
// any other text is.
func TestTerse(t *testing.T) {
	texts := papers(t)
	var before *badge
	var was *pass
	for i, text := range texts {
		for _, method := range []string{"cert", "none"} {
			meta := kind.Meta{ID: fmt.Sprint(i, method)}
			b := &badge{meta, method, terse.Of([]byte(text)), terse.Of([]byte(texts[0]))}
			p := &pass{meta, method, text, texts[0]}
			stored, err := badges.Encode(b)
			plain, bad := passes.Encode(p)
			if err != nil || bad != nil || string(stored) != string(plain) {
				t.Fatalf("stored as %s, and not %s: %v, %v", stored, plain, err, bad)
			}
			again, err := badges.Decode(stored)
			if err != nil || !reflect.DeepEqual(again, kind.Record(b)) {
				t.Errorf("read as %+v, and not %+v: %v", again, b, err)
			}
			if got, want := shown(badges.Def, b), shown(passes.Def, p); got != want {
				t.Errorf("shown as %s, and not %s", got, want)
			}
			if got, want := found(t, badges.Def, b), found(t, passes.Def, p); !reflect.DeepEqual(got, want) {
				t.Errorf("found as %v, and not as %v", got, want)
			}
			if before != nil {
				got, err := badges.Delta(before, b)
				want, bad := passes.Delta(was, p)
				if err != nil || bad != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("differs by %v, and not by %v: %v, %v", got, want, err, bad)
				}
			}
			before, was = b, p
		}
	}
}

// shown is what answers show of a record.
func shown(d *kind.Def, rec kind.Record) string {
	var dst []byte
	for _, diff := range d.Differences(d.New(), rec) {
		dst = fmt.Appendf(dst, "%s %s\n", diff.Name, diff.After)
	}
	return string(dst)
}

// found is what filters see of the certificate.
func found(t *testing.T, d *kind.Def, rec kind.Record) filter.Value {
	t.Helper()
	symbol, ok := d.Symbols.Lookup("cert")
	if !ok {
		t.Fatal("filters cannot name it")
	}
	return symbol.One(rec)
}
