package enroll

import (
	"encoding/base64"
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
	f.Add("eyJhbGciOiJFUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"em":"ott","iss":"https://a:443","jti":"x","ctrls":["https://b:1/x","tls:c:2","https://u@d","https://a:443"],"netkeepApis":["https://b:1"]}`)) + ".AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		inv, err := Read(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(inv.Controller, "https://") || inv.host == "" || inv.Method == "" {
			t.Errorf("%q was read as %+v", text, inv)
		}
		for i, place := range inv.others {
			at := inv.at(place)
			if i >= maxOthers || !strings.HasPrefix(place, "https://") || at.host == "" || place == inv.Controller || len(at.Controllers()) != len(inv.Controllers()) {
				t.Errorf("%q leads on to %q: %+v", text, place, at)
			}
		}
	})
}
