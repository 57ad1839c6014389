package enroll

import (
	"strings"
	"testing"
)

// TestNames refuses what cannot be in a certificate.
func TestNames(t *testing.T) {
	if _, err := (Names{IPs: []string{"nine"}}).template("x"); err == nil {
		t.Error("a word is no IP address")
	}
	if _, err := (Names{URIs: []string{":"}}).template("x"); err == nil {
		t.Error("a colon is no URI")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("eyJhbGciOiJFUzI1NiJ9.eyJlbSI6Im90dCIsImlzcyI6Imh0dHBzOi8vYTo0NDMiLCJqdGkiOiJ4In0.AAAA")
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		inv, err := Read(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(inv.Controller, "https://") || inv.host == "" || inv.Method == "" {
			t.Errorf("%q was read as %+v", text, inv)
		}
	})
}
