package mfa

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp"
	"pgregory.net/rapid"
)

// codeOf is RFC 4226 written out once more, to check the library by.
func codeOf(key []byte, step uint64) string {
	mac := hmac.New(sha1.New, key)
	binary.Write(mac, binary.BigEndian, step)
	sum := mac.Sum(nil)
	cut := binary.BigEndian.Uint32(sum[sum[19]&15:]) & 0x7fffffff
	return fmt.Sprintf("%06d", cut%1_000_000)
}

func TestRFC6238(t *testing.T) {
	secret := base32.StdEncoding.EncodeToString([]byte("12345678901234567890"))
	for unix, code := range map[int64]string{
		59:          "94287082",
		1111111109:  "07081804",
		1111111111:  "14050471",
		1234567890:  "89005924",
		2000000000:  "69279037",
		20000000000: "65353130",
	} {
		step, ok := Verify(secret, code[2:], time.Unix(unix, 0), 0)
		if want := uint64(unix / 30); !ok || step != want {
			t.Errorf("code %s at %d is of step %d (%t), want %d", code[2:], unix, step, ok, want)
		}
	}
}

func TestVerifyWindow(t *testing.T) {
	key := []byte("12345678901234567890")
	secret := base32.StdEncoding.EncodeToString(key)
	const current = 59_000_000
	for _, second := range []int64{0, 29} {
		now := time.Unix(current*30+second, 999).In(time.FixedZone("", 3600))
		for offset := -5; offset <= 5; offset++ {
			step := uint64(current + offset)
			got, ok := Verify(secret, codeOf(key, step), now, 0)
			if want := -2 <= offset && offset <= 2; ok != want || ok && got != step {
				t.Errorf("code of step %+d: step %d, %t", offset, got, ok)
			}
		}
	}
}

func TestVerifyRefusesReplay(t *testing.T) {
	key := []byte("12345678901234567890")
	secret := base32.StdEncoding.EncodeToString(key)
	const current = 59_000_000
	now := time.Unix(current*30, 0)
	last, ok := Verify(secret, codeOf(key, current), now, current-1)
	if !ok || last != current {
		t.Fatalf("fresh code: step %d, %t", last, ok)
	}
	for step := uint64(current - 2); step <= last; step++ {
		if got, ok := Verify(secret, codeOf(key, step), now, last); ok {
			t.Errorf("code of step %d accepted as %d after step %d was used", step, got, last)
		}
	}
	if _, ok := Verify(secret, codeOf(key, last+1), now.Add(time.Minute), last); !ok {
		t.Error("code of the next step refused")
	}
	if _, ok := Verify(secret, codeOf(key, current), now, ^uint64(0)); ok {
		t.Error("code accepted after the last step of all was used")
	}
}

// The same digits may be right for two steps of one window. Using them once
// uses both up.
func TestVerifyTakesTheLatestStep(t *testing.T) {
	key := []byte("12345678901234567890")
	secret := base32.StdEncoding.EncodeToString(key)
	const step = 910737
	if codeOf(key, step) != codeOf(key, step+1) {
		t.Fatal("the codes of the two steps differ")
	}
	now := time.Unix(step*30, 0)
	got, ok := Verify(secret, codeOf(key, step), now, 0)
	if !ok || got != step+1 {
		t.Errorf("got step %d (%t), want %d", got, ok, step+1)
	}
	if _, ok := Verify(secret, codeOf(key, step), now, got); ok {
		t.Error("the same digits passed twice")
	}
}

func TestVerifyRefusesMalformed(t *testing.T) {
	secret := base32.StdEncoding.EncodeToString([]byte("12345678901234567890"))
	now := time.Unix(1111111109, 0)
	const good = "081804"
	if _, ok := Verify(secret, good, now, 0); !ok {
		t.Fatal("good code refused")
	}
	for _, code := range []string{
		"", "0", "81804", "0818040", "00081804", " 81804", good + " ", " " + good, good + "\n", "08180a", "+81804", "-81804", "0x1804",
		"０８１８０４", "٠٨١٨٠٤", "081\x0004", strings.Repeat("0", 1<<16),
	} {
		if _, ok := Verify(secret, code, now, 0); ok {
			t.Errorf("code %.20q accepted", code)
		}
	}
	for name, bad := range map[string]struct{ secret, key string }{
		"empty":        {"", ""},
		"only breaks":  {strings.Repeat("\n", 32), ""},
		"short":        {"AAAAAAAA", "\x00\x00\x00\x00\x00"},
		"not base32":   {strings.Repeat("1", 32), ""},
		"cut":          {secret[:31], "12345678901234567890"},
		"other secret": {strings.Repeat("A", 32), "12345678901234567890"},
	} {
		if _, ok := Verify(bad.secret, codeOf([]byte(bad.key), 1111111109/30), now, 0); ok {
			t.Errorf("secret that is %s accepted", name)
		}
	}
}

func TestVerifyNearTheEpoch(t *testing.T) {
	key := []byte("12345678901234567890")
	secret := base32.StdEncoding.EncodeToString(key)
	for _, tt := range []struct {
		unix int64
		step uint64
		ok   bool
	}{
		{0, 1, true},
		{0, 2, true},
		{0, 3, false},
		{0, 0, false}, // zero means that no step was used, so it is none
		{-3600, 1, false},
		{0, 1<<64 - 1, false},
	} {
		if _, ok := Verify(secret, codeOf(key, tt.step), time.Unix(tt.unix, 0), 0); ok != tt.ok {
			t.Errorf("code of step %d at %d: %t", tt.step, tt.unix, ok)
		}
	}
}

func TestVerifyAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), minSecret, 40).Draw(t, "key")
		current := rapid.Uint64Range(10, 1<<40).Draw(t, "current")
		offset := rapid.IntRange(-4, 4).Draw(t, "offset")
		last := current + uint64(rapid.IntRange(-4, 4).Draw(t, "last"))
		code := codeOf(key, current+uint64(offset))
		want := uint64(0)
		for step := current - 2; step <= current+2; step++ {
			if step > last && codeOf(key, step) == code {
				want = step
			}
		}
		now := time.Unix(int64(current)*30+int64(rapid.IntRange(0, 29).Draw(t, "second")), 0)
		got, ok := Verify(base32.StdEncoding.EncodeToString(key), code, now, last)
		if got != want || ok != (want != 0) {
			t.Fatalf("got step %d, %t, want %d", got, ok, want)
		}
	})
}

func TestNewSecret(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		s := NewSecret()
		if key, err := base32.StdEncoding.DecodeString(s); err != nil || len(key) != 20 || seen[s] || strings.Contains(s, "=") {
			t.Fatalf("secret of %d bytes, seen before %t: %v", len(key), seen[s], err)
		}
		seen[s] = true
	}
}

func TestProvisioningURL(t *testing.T) {
	if got, want := ProvisioningURL("netkeep", "alice", "ABC"), "otpauth://totp/netkeep:alice?issuer=netkeep&secret=ABC"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	plain := regexp.MustCompile(`^otpauth://totp/[A-Za-z0-9%._~-]*:[A-Za-z0-9%._~-]*\?issuer=[A-Za-z0-9%._~-]*&secret=[A-Z2-7]*$`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"Alice Smith", "a:b", "a/b", "a?secret=EVIL&issuer=x", "#", "%41", "100%", "a+b", "José", "名前", "a@b.c", `"<>`, "\xff",
		}))
		issuer, account, secret := name.Draw(t, "issuer"), name.Draw(t, "account"), NewSecret()
		text := ProvisioningURL(issuer, account, secret)
		if !plain.MatchString(text) {
			t.Fatalf("URL %s is not plain", text)
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if u.Path != "/"+issuer+":"+account || u.Host != "totp" || u.Fragment != "" {
			t.Fatalf("read %s as %q", text, u.Path)
		}
		key, err := otp.NewKeyFromURL(text)
		if err != nil || key.Type() != "totp" || key.Secret() != secret || key.Issuer() != issuer && issuer != "" || key.Period() != 30 || key.Digits() != otp.DigitsSix {
			t.Fatalf("read %s as %v: %v", text, key, err)
		}
	})
}

// FuzzVerify checks that whatever is accepted is the code of a step near now,
// later than the last one used, and is refused afterwards.
func FuzzVerify(f *testing.F) {
	f.Add("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "081804", int64(1111111109), uint64(0))
	f.Add("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "081804", int64(1111111109), uint64(37037036))
	f.Add("", "", int64(0), uint64(0))
	f.Add("gezdgnbvgy3tqojq", "000000", int64(-1), uint64(1))
	f.Fuzz(func(t *testing.T, secret, code string, unix int64, last uint64) {
		step, ok := Verify(secret, code, time.Unix(unix, 0), last)
		if !ok {
			if step != 0 {
				t.Fatalf("refused with step %d", step)
			}
			return
		}
		key, err := base32.StdEncoding.DecodeString(secret)
		if err != nil || codeOf(key, step) != code {
			t.Fatalf("accepted %q for step %d: %v", code, step, err)
		}
		if off := int64(step) - unix/30; step <= last || off < -2 || off > 2 {
			t.Fatalf("accepted step %d at %d after %d", step, unix/30, last)
		}
		if _, again := Verify(secret, code, time.Unix(unix, 0), step); again {
			t.Fatalf("accepted %q twice", code)
		}
	})
}
