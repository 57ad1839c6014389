package mfa

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestNewRecoveryCodes(t *testing.T) {
	form := regexp.MustCompile(`^[A-Z2-7]{6}$`)
	used := map[rune]bool{}
	for range 100 {
		codes := NewRecoveryCodes()
		if len(codes) != 20 || len(slices.Compact(slices.Sorted(slices.Values(codes)))) != 20 {
			t.Fatalf("%d codes, or two alike: %v", len(codes), codes)
		}
		for _, c := range codes {
			if !form.MatchString(c) {
				t.Errorf("code %q is not of 6 base32 characters", c)
			}
			for _, r := range c {
				used[r] = true
			}
		}
	}
	// 12,000 characters miss one of 32 about once in 10^164 runs.
	if len(used) != 32 {
		t.Errorf("only %d characters of the alphabet occur", len(used))
	}
	if a, b := NewRecoveryCodes(), NewRecoveryCodes(); slices.Equal(a, b) {
		t.Error("two sets of codes are the same")
	}
}

func TestMatchRecovery(t *testing.T) {
	codes := NewRecoveryCodes()
	for i, c := range codes {
		if got, ok := MatchRecovery(codes, c); !ok || got != i {
			t.Errorf("code %d found at %d, %t", i, got, ok)
		}
		if got, ok := MatchRecovery(slices.Delete(slices.Clone(codes), i, i+1), c); ok || got != -1 {
			t.Errorf("used code %d found at %d", i, got)
		}
	}
	list := []string{"ABCDEF", "", "AB", "ABCDEFGH"}
	for _, code := range []string{"", "A", "AB", "ABCDE", "abcdef", "ABCDEF ", " ABCDEF", "ABCDEFG", "ABCDEFGH", "ABCDE\x00", "ABCDEG"} {
		if got, ok := MatchRecovery(list, code); ok || got != -1 {
			t.Errorf("%q found at %d", code, got)
		}
	}
	if _, ok := MatchRecovery(nil, "ABCDEF"); ok {
		t.Error("found a code where there is none")
	}
}

// FuzzMatchRecovery compares with plain equality.
func FuzzMatchRecovery(f *testing.F) {
	f.Add("ABCDEF,GHIJKL", "GHIJKL")
	f.Add("ABCDEF,ABCDEF", "ABCDEF")
	f.Add(",", "")
	f.Fuzz(func(t *testing.T, list, code string) {
		codes := strings.Split(list, ",")
		index, ok := MatchRecovery(codes, code)
		if want := len(code) == 6 && slices.Contains(codes, code); ok != want {
			t.Fatalf("%q in %q: %t, want %t", code, codes, ok, want)
		}
		if ok && codes[index] != code || !ok && index != -1 {
			t.Fatalf("%q in %q: found at %d", code, codes, index)
		}
	})
}
