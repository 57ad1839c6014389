package alert_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// verify returns the body of a request that is from somebody who knows the secret, and not
// older than five minutes.
func verify(r *http.Request, secret string) ([]byte, bool) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
	at := r.Header.Get("Netkeep-Timestamp")
	sent, bad := strconv.ParseInt(at, 10, 64)
	if err != nil || bad != nil || time.Since(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return nil, false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	want := "v1=" + hex.EncodeToString(mac.Sum(nil))
	return body, hmac.Equal([]byte(want), []byte(r.Header.Get("Netkeep-Signature")))
}

// TestVerifyIsDocumented checks that people are told to verify as the tests here do.
func TestVerifyIsDocumented(t *testing.T) {
	own, err := os.ReadFile("verify_test.go")
	must(t, err)
	_, text, _ := strings.Cut(string(own), "\n// verify returns")
	text, _, _ = strings.Cut("// verify returns"+text, "\n}\n")
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "alerts.md"))
	must(t, err)
	if !strings.Contains(string(page), "```go\n"+text+"\n}\n```\n") {
		t.Errorf("docs/alerts.md does not have:\n%s", text)
	}
}
