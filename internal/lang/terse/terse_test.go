package terse

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// authority issues certificates under a name.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return authority{&x509.Certificate{Subject: pkix.Name{CommonName: name}, SubjectKeyId: bytes.Repeat([]byte(name[:1]), 20)}, key}
}

// issue is a client certificate as a controller makes them.
func (a authority) issue(t testing.TB, subject string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 128))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: subject}, NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func asPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestSize shows that a certificate whose issuer was met takes two fifths of its text at most.
func TestSize(t *testing.T) {
	a := newAuthority(t, "Netkeep Signing CA 1a4b9861")
	for i := range 100 {
		text := asPEM(a.issue(t, fmt.Sprintf("subject-%d", i)))
		kept := Of(text)
		if kept.String() != string(text) {
			t.Fatalf("says\n%s, and not\n%s", kept, text)
		}
		if i > 0 && len(kept) > len(text)*2/5 {
			t.Errorf("%d bytes are kept of %d", len(kept), len(text))
		}
	}
}

// TestAny shows that whatever is kept says what it was made of, and that two are equal
// just if they say the same: certificates, some of which were cut, changed or put together.
func TestAny(t *testing.T) {
	var ders [][]byte
	for i := range 8 {
		a := newAuthority(t, strings.Repeat("name ", i+1))
		for j := range 4 {
			ders = append(ders, a.issue(t, strings.Repeat("x", j*j*j)))
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) []byte {
			der := bytes.Clone(rapid.SampledFrom(ders).Draw(rt, label))
			for range rapid.IntRange(0, 4).Draw(rt, "changes") {
				at := rapid.IntRange(0, len(der)-1).Draw(rt, "at")
				switch rapid.IntRange(0, 2).Draw(rt, "change") {
				case 0:
					der[at] = rapid.Byte().Draw(rt, "byte")
				case 1:
					der = append(der[:at:at], append(rapid.SliceOfN(rapid.Byte(), 0, 3000).Draw(rt, "more"), der[at:]...)...)
				case 2:
					der = der[:max(1, at)]
				}
			}
			text := asPEM(der)
			switch at := rapid.IntRange(0, len(text)).Draw(rt, "place"); rapid.IntRange(0, 5).Draw(rt, "written") {
			case 0:
				text = text[:at]
			case 1:
				text = append(text, text...)
			case 2:
				text = append(text[:at:at], append([]byte("\n"), text[at:]...)...)
			case 3:
				text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
			}
			return text
		}
		one, other := draw("one"), draw("other")
		a, b := Of(one), Of(other)
		if a.String() != string(one) || b.String() != string(other) {
			rt.Fatalf("%q says %q, and %q says %q", one, a, other, b)
		}
		if (a == b) != bytes.Equal(one, other) || a != Of(one) {
			rt.Fatalf("%q and %q", one, other)
		}
		if len(a) > len(one)+1 {
			rt.Fatalf("%d bytes are kept of %d", len(a), len(one))
		}
	})
}

func TestNothing(t *testing.T) {
	if kept := Of(nil); kept != "" || kept.String() != "" {
		t.Errorf("got %q", kept)
	}
	if kept := Of([]byte("\x05some text")); kept.String() != "\x05some text" {
		t.Errorf("says %q", kept)
	}
}

// TestFull shows that there is an end to what is kept whole, and that the rest is said all
// the same, also by those who come at the same time.
func TestFull(t *testing.T) {
	var s shelf
	ders := make([][]byte, 300)
	for i := range ders {
		ders[i] = newAuthority(t, fmt.Sprint("issuer ", i)).issue(t, "somebody")
	}
	numbers := make([][]byte, 4)
	var wait sync.WaitGroup
	for w := range numbers {
		numbers[w] = make([]byte, len(ders))
		wait.Go(func() {
			for i, der := range ders {
				numbers[w][i] = s.of(der)
			}
		})
	}
	wait.Wait()
	used := map[byte]int{}
	for i, der := range ders {
		n := numbers[0][i]
		used[n]++
		for _, other := range numbers[1:] {
			if other[i] != n {
				t.Fatalf("certificate %d is told by %d and by %d", i, n, other[i])
			}
		}
		if n != asIs && !bytes.Equal(s.at(n).told(nil, Text(s.at(n).tell(nil, der))), der) {
			t.Errorf("certificate %d is not told as it is", i)
		}
	}
	if len(used) != 256 || used[asIs] != len(ders)-255 {
		t.Errorf("%d samples are used, and none by %d", len(used)-1, used[asIs])
	}
}

func FuzzOf(f *testing.F) {
	f.Add([]byte(begin + "MAA=\n" + end))
	f.Add(asPEM(newAuthority(f, "fuzz").issue(f, "somebody")))
	f.Fuzz(func(t *testing.T, text []byte) {
		if kept := Of(text); kept.String() != string(text) {
			t.Errorf("%q says %q", text, kept)
		}
	})
}

// BenchmarkOf is what a record costs more that is read, and BenchmarkString one that is shown.
func BenchmarkOf(b *testing.B) {
	text := asPEM(newAuthority(b, "bench").issue(b, "somebody"))
	b.ReportAllocs()
	for b.Loop() {
		Of(text)
	}
}

func BenchmarkString(b *testing.B) {
	kept := Of(asPEM(newAuthority(b, "bench").issue(b, "somebody")))
	b.ReportAllocs()
	for b.Loop() {
		_ = kept.String()
	}
}
