package auth_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"netkeep/internal/model"
	"netkeep/test/servertest"
)

// ledger collects the secrets that went over the wire in either direction, and
// every answer, so that in the end each can be looked for in all.
type ledger struct {
	mu      sync.Mutex
	secrets map[string]string // to what they are
	answers []spokenAnswer
}

// spokenAnswer is an answer without what it had to tell its receiver.
type spokenAnswer struct{ what, text string }

// secretMembers are the members of bodies that nobody else may see.
var secretMembers = []string{"password", "currentPassword", "code"}

// secretHeaders are the headers that nobody else may see.
var secretHeaders = []string{"net-session", "zt-session", "Authorization", "Authentication", "mfa-validation-code"}

// secretive is what tokens and codes look like: forged ones may be anything,
// even an id that is no secret.
var secretive = regexp.MustCompile(`^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]+\.[\w-]+\.[\w-]+|\w{6})$`)

// note sees a request and its answer.
func (l *ledger) note(req *http.Request, body []byte, a *servertest.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what := req.Method + " " + req.URL.Path
	for _, name := range secretHeaders {
		for _, value := range req.Header.Values(name) {
			if value = strings.TrimPrefix(value, "Bearer "); secretive.MatchString(value) {
				l.add(value, "header "+name+" of "+what)
			}
		}
	}
	var sent M
	if json.Unmarshal(body, &sent) == nil {
		for _, name := range secretMembers {
			if value, ok := sent[name].(string); ok && value != sent["username"] {
				l.add(value, "member "+name+" of "+what)
			}
		}
	}
	text := string(a.Raw)
	for _, own := range told(what, a) {
		l.add(own, "told by "+what)
		text = strings.ReplaceAll(text, own, "")
	}
	l.answers = append(l.answers, spokenAnswer{what, text})
}

// told returns the secrets that an answer is there to tell.
func told(what string, a *servertest.Answer) (secrets []string) {
	if strings.HasSuffix(what, "/authenticate") || strings.HasSuffix(what, "/current-api-session") {
		token, _ := a.At("data.token").(string)
		secrets = append(secrets, token)
	}
	if strings.HasPrefix(what, "GET ") && (strings.HasSuffix(what, "/mfa") || strings.HasSuffix(what, "/recovery-codes")) {
		codes, _ := a.At("data.recoveryCodes").([]any)
		for _, code := range codes {
			secrets = append(secrets, code.(string))
		}
		text, _ := a.At("data.provisioningUrl").(string)
		if u, err := url.Parse(text); err == nil {
			secrets = append(secrets, u.Query().Get("secret"))
		}
	}
	return secrets
}

// add takes a secret, unless it is so short that it says nothing.
func (l *ledger) add(secret, what string) {
	if len(secret) < 5 {
		return
	}
	if l.secrets == nil {
		l.secrets = map[string]string{}
	}
	l.secrets[secret] = what
}

// leaks returns where secrets appear that should not.
func (l *ledger) leaks(s *servertest.Server) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.answers) == 0 {
		return nil // no test has run
	}
	l.addStored(s)
	var log, answers strings.Builder
	for _, line := range s.Log() {
		fmt.Fprintln(&log, withoutNumbers(line))
	}
	once := map[string]bool{} // some are large, and many alike
	for _, a := range l.answers {
		if !once[a.text] {
			fmt.Fprintln(&answers, a.what, a.text)
		}
		once[a.text] = true
	}
	for secret, what := range l.secrets {
		for place, text := range map[string]string{"the log": log.String(), "an answer": answers.String()} {
			if at := find(text, secret); at >= 0 {
				found = append(found, fmt.Sprintf("%s is in %s: …%s…", what, place, text[max(0, at-200):min(len(text), at+200)]))
			}
		}
	}
	return found
}

// addStored adds what the controller keeps and what it signs with.
func (l *ledger) addStored(s *servertest.Server) {
	snap := s.State().Snapshot()
	for a := range model.Authenticators.All(snap) {
		l.add(a.PasswordHash, "a password hash")
	}
	for a := range model.APISessions.All(snap) {
		l.add(a.TokenHash, "the hash of a token")
	}
	for m := range model.MFAs.All(snap) {
		l.add(m.Secret, "the secret of a second factor")
	}
	for _, mark := range []string{"$argon2id$", "PRIVATE KEY"} {
		l.add(mark, mark)
	}
	key, err := s.Keys().MACKey("api session tokens")
	if err != nil {
		panic(err) // it was derived when the controller started
	}
	l.add(string(key), "the key of tokens")
	l.add(hex.EncodeToString(key), "the key of tokens")
	l.add(base64.StdEncoding.EncodeToString(key), "the key of tokens")
}

// withoutNumbers drops from a log line what may happen to look like a code.
func withoutNumbers(line string) string {
	var fields M
	if json.Unmarshal([]byte(line), &fields) != nil {
		return line
	}
	delete(fields, "time")
	delete(fields, "took")
	text, err := json.Marshal(fields)
	if err != nil {
		return line
	}
	return string(text)
}

// find returns where a text holds a secret, or -1. A short one must stand
// alone: six digits are part of many things.
func find(text, secret string) int {
	// The end of a long one says as much as the whole, and is found sooner.
	secret = secret[max(0, len(secret)-48):]
	for from := 0; ; {
		at := strings.Index(text[from:], secret)
		if at < 0 {
			return -1
		}
		at += from
		end := at + len(secret)
		if len(secret) > 12 || (at == 0 || !isWord(text[at-1])) && (end == len(text) || !isWord(text[end])) {
			return at
		}
		from = at + 1
	}
}

func isWord(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// TestLedger checks that the ledger finds what it is there to find.
func TestLedger(t *testing.T) {
	for _, test := range []struct {
		text, secret string
		want         int
	}{
		{"xx-123456-", "123456", 3}, {"x123456", "123456", -1}, {"1234567", "123456", -1}, {"123456", "123456", 0},
		{"0123456 123456", "123456", 8}, {"xa-long-secret-indeedx", "a-long-secret-indeed", 1}, {"", "secret", -1},
	} {
		if got := find(test.text, test.secret); got != test.want {
			t.Errorf("%q in %q: %d, want %d", test.secret, test.text, got, test.want)
		}
	}
	password := rand.Text()
	shared.Nobody(t).Post(byPassword, M{"username": servertest.Username, "password": password}).Want(http.StatusUnauthorized)
	token := enter(t, add(t, nil)).Token
	spoken.mu.Lock()
	defer spoken.mu.Unlock()
	for _, secret := range []string{password, token} {
		if spoken.secrets[secret] == "" {
			t.Error("a secret went by unnoticed")
		}
	}
}
