package servertest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
)

// ledger collects the secrets that went over the wire in either direction, and
// every answer, so that in the end each can be looked for in all.
type ledger struct {
	mu      sync.Mutex
	secrets map[string]secret
	answers map[string]string // what was said, to a request that it answers
}

// secret is something that is not to be seen by others.
type secret struct {
	what string
	// told says that answers may show it, to those who may read the record that
	// it belongs to. The log may not.
	told bool
}

// secretMembers are the members of bodies that nobody else may see.
var secretMembers = []string{"password", "currentPassword", "code"}

// secretHeaders are the headers that nobody else may see.
var secretHeaders = []string{"net-session", "zt-session", "Authorization", "Authentication", "mfa-validation-code"}

// secretive is what tokens and codes look like: forged ones may be anything,
// even an id that is no secret.
var secretive = regexp.MustCompile(`^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w-]+\.[\w-]+\.[\w-]+|nkt_\w+|\w{6})$`)

// tokenMembers are the members of answers, wherever in them, that some may
// read but that must not be logged.
var tokenMembers = []string{"token", "jwt", "enrollmentToken", "enrollmentJwt", "verificationToken"}

// Heard tells of a request that did not come from a Client, so that its
// secrets too are looked for when the controller stops.
func (s *Server) Heard(req *http.Request, body []byte, a *Answer) {
	if a.JSON == nil {
		_ = json.Unmarshal(a.Raw, &a.JSON) // some answers are none
	}
	s.ledger.note(req, body, a)
}

// note sees a request and its answer.
func (l *ledger) note(req *http.Request, body []byte, a *Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	what := req.Method + " " + req.URL.Path
	for _, name := range secretHeaders {
		for _, value := range req.Header.Values(name) {
			if value = strings.TrimPrefix(value, "Bearer "); secretive.MatchString(value) {
				l.add(value, secret{what: "header " + name + " of " + what})
			}
		}
	}
	var sent M
	if json.Unmarshal(body, &sent) == nil {
		for _, name := range secretMembers {
			if value, ok := sent[name].(string); ok && value != sent["username"] {
				l.add(value, secret{what: "member " + name + " of " + what})
			}
		}
	}
	if token := req.URL.Query().Get("token"); secretive.MatchString(token) {
		l.add(token, secret{"parameter token of " + what, true})
	}
	text := string(a.Raw)
	for _, own := range told(what, a) {
		l.add(own, secret{what: "told by " + what})
		text = strings.ReplaceAll(text, own, "")
	}
	l.addTokens(a.JSON, "told by "+what)
	if l.answers == nil {
		l.answers = map[string]string{}
	}
	l.answers[text] = what
}

// addTokens takes the tokens that are anywhere in an answer.
func (l *ledger) addTokens(answer any, what string) {
	switch v := answer.(type) {
	case M:
		for _, name := range tokenMembers {
			if token, ok := v[name].(string); ok {
				l.add(token, secret{"member " + name + " " + what, true})
			}
		}
		for _, member := range v {
			l.addTokens(member, what)
		}
	case []any:
		for _, member := range v {
			l.addTokens(member, what)
		}
	}
}

// told returns the secrets that an answer is there to tell.
func told(what string, a *Answer) (secrets []string) {
	if what == "POST "+api.ManagementRoot+"/tokens" || strings.HasSuffix(what, "/authenticate") || strings.HasSuffix(what, "/current-api-session") {
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

// add takes a secret, unless it is so short or so dull that it says nothing.
// What somebody may not tell nobody may.
func (l *ledger) add(value string, it secret) {
	if len(value) < 5 || strings.Count(value, value[:1]) == len(value) {
		return
	}
	if l.secrets == nil {
		l.secrets = map[string]secret{}
	}
	if known, ok := l.secrets[value]; ok && !known.told {
		return
	}
	l.secrets[value] = it
}

// leaks returns where secrets appear that should not.
func (l *ledger) leaks(s *Server) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addStored(s)
	var log, answers strings.Builder
	for _, line := range s.Log() {
		fmt.Fprintln(&log, withoutNumbers(line))
	}
	for text, what := range l.answers {
		fmt.Fprintln(&answers, what, text)
	}
	for value, it := range l.secrets {
		places := map[string]string{"the log": log.String()}
		if !it.told {
			places["an answer"] = answers.String()
		}
		for place, text := range places {
			if at := find(text, value); at >= 0 {
				found = append(found, fmt.Sprintf("%s is in %s: …%s…", it.what, place, text[max(0, at-200):min(len(text), at+200)]))
			}
		}
	}
	return found
}

// addStored adds what the controller keeps and what it signs with.
func (l *ledger) addStored(s *Server) {
	snap := s.State().Snapshot()
	for a := range model.Authenticators.All(snap) {
		l.add(a.PasswordHash, secret{what: "a password hash"})
	}
	for a := range model.APISessions.All(snap) {
		l.add(a.TokenHash, secret{what: "the hash of a token"})
	}
	for m := range model.MFAs.All(snap) {
		l.add(m.Secret, secret{what: "the secret of a second factor"})
	}
	for _, mark := range []string{"$argon2id$", "PRIVATE KEY"} {
		l.add(mark, secret{what: mark})
	}
	for _, purpose := range []string{"api session tokens", "session tokens", "seals", "nonces of seals"} {
		keys, err := s.Keys().MACKeys(purpose)
		if err != nil {
			panic(err) // it was derived when the controller started
		}
		key := keys.Current
		for _, text := range []string{string(key), hex.EncodeToString(key), base64.StdEncoding.EncodeToString(key)} {
			l.add(text, secret{what: "the key of " + purpose})
		}
	}
	l.addFiles(filepath.Join(s.Config.Data, "pki"))
}

// addFiles adds a part of each private key that nothing public shares: the
// first line of its file ends in it.
func (l *ledger) addFiles(dir string) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.key")) // the pattern is right
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			panic(err) // the controller reads it too
		}
		if block, _ := pem.Decode(text); block == nil || block.Type != "PRIVATE KEY" {
			continue
		}
		line := strings.Split(string(text), "\n")[1]
		l.add(line[max(0, len(line)-16):], secret{what: "a part of " + filepath.Base(name)})
	}
}

// withoutNumbers drops from a log line what may happen to look like a code.
func withoutNumbers(line string) string {
	var fields M
	if json.Unmarshal([]byte(line), &fields) != nil {
		return line
	}
	delete(fields, "time")
	delete(fields, "ms")
	delete(fields, "bytes")
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
