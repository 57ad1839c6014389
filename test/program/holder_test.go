package program_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" // as the controller calls certificates
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	clientAPI = "/edge/client/v1/"
	fresh     = " ?" // stands for the id of what is made, until that is known
)

// facts are what there is of a holder: words such as "grant" and an id after them.
type facts map[string]bool

// holder is invited, enrolls, logs in, asks for sessions, has its certificate extended
// and is granted attributes, one after the other and by chance. What was acknowledged of
// that must be so ever after, and what was in flight must be so as a whole or not at all.
type holder struct {
	name   string
	random *mathrand.Rand
	serial int
	have   facts
	// pending is what there is after the step that is being taken.
	pending facts
	failure error

	identity, authenticator, invitation string
	cert, next                          *tls.Certificate
	tokens                              map[string]string // of API sessions, by id
	over                                []string          // tokens that are good for nothing any more
	spent                               string            // an invitation that was used
	service                             string            // that everybody may dial

	tally
	doing string
	did   map[string]int // what was acknowledged, by its sort
}

func newHolder(name string, random *mathrand.Rand, service string) *holder {
	return &holder{name: name, random: random, have: facts{}, tokens: map[string]string{}, did: map[string]int{}, service: service}
}

// openToHolders makes a service that all holders may dial, and returns its id.
func (c *client) openToHolders(t *testing.T) string {
	t.Helper()
	id := c.must(t, 201, http.MethodPost, "services", M{"name": "open to holders", "encryptionRequired": true}).id()
	c.must(t, 201, http.MethodPost, "service-policies", M{
		"name": "holders", "type": "Dial", "semantic": "AnyOf", "identityRoles": []string{"#holders"}, "serviceRoles": []string{"@" + id},
	})
	return id
}

// as is the client of somebody with a certificate and the token of a session.
func (c *client) as(cert *tls.Certificate, token string) *client {
	transport := c.http.Transport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	if cert != nil {
		transport.TLSClientConfig.Certificates = []tls.Certificate{*cert}
	}
	return &client{base: c.base, token: token, http: &http.Client{Transport: transport, Timeout: c.http.Timeout}}
}

// with and without are the facts with a change.
func (f facts) with(words ...string) facts {
	after := maps.Clone(f)
	for _, w := range words {
		after[w] = true
	}
	return after
}

func (f facts) without(words ...string) facts {
	after := maps.Clone(f)
	for _, w := range words {
		delete(after, w)
	}
	return after
}

// ids are those of all facts of a sort, in order.
func (f facts) ids(sort string) (ids []string) {
	for word := range f {
		if id, is := strings.CutPrefix(word, sort+" "); is {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// write takes steps until one is not answered.
func (h *holder) write(c *client, acknowledged func()) {
	for h.failure == nil {
		h.serial++
		h.pending = h.have
		err := h.step(c)
		if errors.Is(err, errUnanswered) {
			return
		}
		if errors.Is(err, errNotYet) {
			h.pending = h.have
			continue
		}
		if err != nil {
			h.failure = fmt.Errorf("%s: %w", h.name, err)
			return
		}
		h.have, h.pending = h.pending, nil
		h.acknowledged++
		h.did[h.doing]++
		acknowledged()
	}
}

var (
	errUnanswered = errors.New("no answer")
	errNotYet     = errors.New("no router is there yet")
)

// asks makes a request that has to be granted.
func (h *holder) asks(c *client, method, path string, body any) (M, error) {
	a, err := c.do(method, path, body)
	if err != nil || a.full() {
		return nil, errUnanswered
	}
	if a.status >= 300 {
		if problem, _ := a.body["error"].(M); problem["code"] == "NO_EDGE_ROUTERS_AVAILABLE" {
			return nil, errNotYet
		}
		return nil, fmt.Errorf("%s %s answers %d: %v", method, path, a.status, a.body)
	}
	data, _ := a.body["data"].(M)
	return data, nil
}

// step is the next thing that it does.
func (h *holder) step(c *client) error {
	switch {
	case h.identity == "":
		return h.beInvited(c)
	case h.cert == nil && h.invitation != "":
		return h.enroll(c)
	case h.cert == nil || h.random.IntN(40) == 0: // what it was sent never came
		return h.leave(c)
	}
	sessions := h.have.ids("api-session")
	dice := h.random.IntN(10)
	held := slices.Sorted(maps.Keys(h.tokens))
	switch {
	case len(held) == 0, len(sessions) < 4 && dice < 2:
		return h.login(c)
	case len(sessions) >= 4 || dice < 3:
		return h.logout(c, held[h.random.IntN(len(held))])
	case dice < 5:
		return h.session(c, held[h.random.IntN(len(held))])
	case dice < 8:
		return h.extend(c, h.tokens[held[0]])
	}
	return h.grant(c)
}

func (h *holder) beInvited(c *client) error {
	h.doing = "invited"
	h.pending = h.have.with("identity"+fresh, "enrollment"+fresh)
	made, err := h.asks(c, http.MethodPost, "identities", M{
		"name": h.name + fmt.Sprint(h.serial), "type": "Device", "isAdmin": false, "roleAttributes": []string{"holders"}, "enrollment": M{"ott": true},
	})
	if err != nil {
		return err
	}
	h.identity = made["id"].(string)
	return h.take(c)
}

// take looks for the invitation that there is, and who it is for.
func (h *holder) take(c *client) error {
	data, err := h.asks(c, http.MethodGet, "identities/"+h.identity, nil)
	if err != nil {
		return err
	}
	ott := data["enrollment"].(M)["ott"].(M)
	h.invitation = ott["token"].(string)
	h.pending = facts{"identity " + h.identity: true, "enrollment " + ott["id"].(string): true}
	return nil
}

// signingRequest makes a key and a request for a certificate.
func signingRequest() (*ecdsa.PrivateKey, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})), err
}

// issued is a certificate as it was answered, and what its authenticator is called by.
func issued(text any, key *ecdsa.PrivateKey) (*tls.Certificate, string, error) {
	s, _ := text.(string)
	block, _ := pem.Decode([]byte(s))
	if block == nil {
		return nil, "", fmt.Errorf("no certificate came, but %v", text)
	}
	sum := sha1.Sum(block.Bytes)
	return &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}, "certificate " + hex.EncodeToString(sum[:]), nil
}

func (h *holder) enroll(c *client) error {
	h.doing = "enroll"
	key, csr, err := signingRequest()
	if err != nil {
		return err
	}
	h.pending = facts{"identity " + h.identity: true, "certificate" + fresh: true}
	got, err := h.asks(c.as(nil, ""), http.MethodPost, clientAPI+"enroll?token="+url.QueryEscape(h.invitation), M{"clientCsr": csr})
	if err != nil {
		return err
	}
	cert, called, err := issued(got["cert"], key)
	h.cert, h.spent, h.invitation = cert, h.invitation, ""
	h.pending = facts{"identity " + h.identity: true, called: true}
	return err
}

func (h *holder) login(c *client) error {
	h.doing = "login"
	h.pending = h.have.with("api-session" + fresh)
	got, err := h.asks(c.as(h.cert, ""), http.MethodPost, clientAPI+"authenticate?method=cert", M{})
	if err != nil {
		return err
	}
	id := got["id"].(string)
	h.tokens[id] = got["token"].(string)
	h.authenticator = got["authenticatorId"].(string)
	h.pending = h.have.with("api-session " + id)
	return nil
}

// ended are the facts without an API session, and the sessions that rest on it.
func (h *holder) ended(api string) facts {
	after := h.have.without("api-session " + api)
	for _, id := range h.have.ids("session") {
		if strings.HasSuffix(id, " of "+api) {
			delete(after, "session "+id)
		}
	}
	return after
}

func (h *holder) logout(c *client, id string) error {
	h.doing = "logout"
	h.pending = h.ended(id)
	token := h.tokens[id]
	delete(h.tokens, id) // whatever becomes of it
	if _, err := h.asks(c.as(h.cert, token), http.MethodDelete, clientAPI+"current-api-session", nil); err != nil {
		return err
	}
	h.over = append(h.over, token)
	return nil
}

func (h *holder) session(c *client, api string) error {
	h.doing = "session"
	h.pending = h.have.with("session" + fresh + " of " + api)
	got, err := h.asks(c.as(h.cert, h.tokens[api]), http.MethodPost, clientAPI+"sessions", M{"serviceId": h.service, "type": "Dial"})
	if err != nil {
		return err
	}
	h.pending = h.have.with("session " + got["id"].(string) + " of " + api)
	return nil
}

// extend asks for another certificate, or confirms that it has come: one that was
// acknowledged is there to be confirmed, whatever happened between.
func (h *holder) extend(c *client, token string) error {
	h.doing = "extend"
	mine, path := c.as(h.cert, token), clientAPI+"current-identity/authenticators/"+h.authenticator
	if h.next == nil {
		key, csr, err := signingRequest()
		if err != nil {
			return err
		}
		got, err := h.asks(mine, http.MethodPost, path+"/extend", M{"clientCertCsr": csr})
		if err != nil {
			return err
		}
		h.next, _, err = issued(got["clientCert"], key)
		return err
	}
	text := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.next.Certificate[0]}))
	_, called, err := issued(text, nil)
	if err != nil {
		return err
	}
	h.pending = h.have.without("certificate " + h.have.ids("certificate")[0]).with(called)
	if _, err = h.asks(mine, http.MethodPost, path+"/extend-verify", M{"clientCert": text}); err != nil {
		return err
	}
	h.cert, h.next = h.next, nil
	return nil
}

// grant gives it an attribute for a time, or takes it away again.
func (h *holder) grant(c *client) error {
	h.doing = "grant"
	if grants := h.have.ids("grant"); len(grants) > 2 {
		id, attribute, _ := strings.Cut(grants[h.random.IntN(len(grants))], " of ")
		h.pending = h.have.without("grant "+id+" of "+attribute, "lent "+attribute)
		_, err := h.asks(c, http.MethodDelete, "grants/"+id, nil)
		return err
	}
	attribute := fmt.Sprint("lent-", h.serial)
	h.pending = h.have.with("grant"+fresh+" of "+attribute, "lent "+attribute)
	got, err := h.asks(c, http.MethodPost, "grants", M{
		"identityId": h.identity, "attribute": attribute, "reason": "a test", "validUntil": time.Now().Add(10 * time.Hour).UTC().Format(time.RFC3339),
	})
	if err != nil {
		return err
	}
	h.pending = h.have.with("grant "+got["id"].(string)+" of "+attribute, "lent "+attribute)
	return nil
}

// leave has it be deleted, upon which nothing of it is left.
func (h *holder) leave(c *client) error {
	h.doing = "leave"
	h.pending = facts{}
	if _, err := h.asks(c, http.MethodDelete, "identities/"+h.identity, nil); err != nil {
		return err
	}
	h.begin()
	return nil
}

// begin has it be somebody who was never there.
func (h *holder) begin() {
	h.over = append(h.over, slices.Collect(maps.Values(h.tokens))...)
	h.identity, h.cert, h.next, h.invitation, h.spent = "", nil, nil, "", ""
	clear(h.tokens)
}

// settle finds out whether the step in flight was taken, and whether all is as it must
// be, to an admin and to the holder.
func (h *holder) settle(c *client, seen facts) error {
	if h.failure != nil {
		return h.failure
	}
	if seen == nil {
		seen = facts{}
	}
	if h.pending != nil {
		h.open++
	}
	there := h.known(seen)
	switch before := cmp.Diff(h.have, there); {
	case before == "":
	case h.pending == nil:
		return fmt.Errorf("%s has other than was acknowledged (-acknowledged +there):\n%s", h.name, before)
	case cmp.Equal(h.pending, there):
		h.happened++
		h.arrived(seen)
	default:
		return fmt.Errorf("%s has other than was acknowledged (-acknowledged +there):\n%s\nand than after what was in flight (-after +there):\n%s",
			h.name, before, cmp.Diff(h.pending, there))
	}
	h.pending = nil
	return h.tries(c)
}

// known are the facts as they are with a placeholder for what nobody was told of.
func (h *holder) known(seen facts) facts {
	there := facts{}
	for word := range seen {
		if !h.have[word] && !h.pending[word] {
			sort, id, _ := strings.Cut(word, " ")
			_, of, owned := strings.Cut(id, " of ")
			if word = sort + fresh; owned {
				word += " of " + of
			}
		}
		there[word] = true
	}
	return there
}

// arrived goes on from a step that was taken and never acknowledged.
func (h *holder) arrived(seen facts) {
	was := h.have
	h.have = seen
	switch ids := seen.ids("identity"); {
	case len(ids) == 0:
		h.begin()
		return
	case h.identity == "":
		h.identity = ids[0] // and is deleted next: it was never told its invitation
	}
	switch now := seen.ids("certificate"); {
	case len(was.ids("certificate")) == 0 && len(now) > 0:
		h.spent, h.invitation = h.invitation, ""
	case len(now) > 0 && now[0] != was.ids("certificate")[0]:
		h.cert, h.next = h.next, nil
	}
}

// tries has what it holds be good, and what is over be good for nothing.
func (h *holder) tries(c *client) error {
	for id, token := range h.tokens {
		status, err := c.as(h.cert, token).status(http.MethodGet, clientAPI+"current-api-session", nil)
		if want := map[bool]int{true: 200, false: 401}[h.have["api-session "+id]]; err != nil || status != want {
			return fmt.Errorf("%s: an API session answers %d, want %d: %v", h.name, status, want, err)
		}
	}
	if len(h.over) > 3 {
		h.over = h.over[len(h.over)-3:]
	}
	for _, token := range h.over {
		if status, err := c.as(h.cert, token).status(http.MethodGet, clientAPI+"current-api-session", nil); err != nil || status != 401 {
			return fmt.Errorf("%s: an API session that is over answers %d: %v", h.name, status, err)
		}
	}
	if h.spent == "" {
		return nil
	}
	_, csr, err := signingRequest()
	if err != nil {
		return err
	}
	status, err := c.as(nil, "").status(http.MethodPost, clientAPI+"enroll?token="+url.QueryEscape(h.spent), M{"clientCsr": csr})
	if err != nil || status < 400 || status >= 500 {
		return fmt.Errorf("%s: an invitation that is spent answers %d: %v", h.name, status, err)
	}
	return nil
}

// status is what a request is answered with.
func (c *client) status(method, path string, body any) (int, error) {
	a, err := c.do(method, path, body)
	return a.status, err
}

// standing is what there is of all holders, by their names without numbers.
func (c *client) standing(t *testing.T) map[string]facts {
	t.Helper()
	all, whose := map[string]facts{}, map[string]facts{}
	for id, identity := range c.list(t, "identities") {
		name := strings.TrimRight(identity["name"].(string), "0123456789")
		if !strings.HasPrefix(name, "holder") {
			continue
		}
		if all[name] == nil {
			all[name] = facts{}
		}
		all[name]["identity "+id] = true
		whose[id] = all[name]
		lent, _ := identity["grantedAttributes"].([]any)
		for _, attribute := range lent {
			all[name]["lent "+attribute.(string)] = true
		}
	}
	for path, sort := range map[string]string{
		"enrollments": "enrollment", "authenticators": "certificate", "api-sessions": "api-session", "sessions": "session", "grants": "grant",
	} {
		for id, rec := range c.list(t, path) {
			who, _ := rec["identityId"].(string)
			if whose[who] == nil {
				continue
			}
			switch sort {
			case "certificate":
				id = rec["fingerprint"].(string)
			case "session":
				id += " of " + rec["apiSessionId"].(string)
			case "grant":
				id += " of " + rec["attribute"].(string)
			}
			whose[who][sort+" "+id] = true
		}
	}
	return all
}
