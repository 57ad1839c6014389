package signon

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// desk is one whose clock a test sets, and whose provider says what it is told to.
func desk(now *time.Time, keys *[][]byte, doc string, asked *int) *Desk {
	return &Desk{
		Get: func(context.Context, string) ([]byte, http.Header, error) {
			*asked++
			return []byte(doc), nil, nil
		},
		Post: func(context.Context, string, http.Header, []byte) ([]byte, error) {
			return nil, errors.New("nobody is asked")
		},
		Keys: func() ([][]byte, error) { return *keys, nil }, Now: func() time.Time { return *now },
	}
}

const sound = `{"issuer":"https://id.example","authorization_endpoint":"https://id.example/a","token_endpoint":"https://id.example/t"}`

var example = Provider{ID: "one", Name: "Example", URL: "https://id.example/", ClientID: "console"}

func newKey() []byte {
	key := make([]byte, 32)
	rand.Read(key)
	return key
}

// TestTicket holds what a browser keeps to its time, its key and its answer.
func TestTicket(t *testing.T) {
	now, keys, asked := time.Unix(1_800_000_000, 0), [][]byte{newKey()}, 0
	d := desk(&now, &keys, sound, &asked)
	to, sealed, err := d.Begin(t.Context(), example, "https://here/console/provider", Errand{Next: "/console/x", Aside: true})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	answer := url.Values{"state": {u.Query().Get("state")}, "code": {"c"}}
	ticket, err := d.Open(sealed, answer)
	if err != nil || ticket.Next != "/console/x" || ticket.Signer != "one" || !ticket.Aside || ticket.Nonce != u.Query().Get("nonce") {
		t.Errorf("the ticket is %+v, %v", ticket, err)
	}
	if strings.Contains(to, ticket.Verifier) || strings.Contains(sealed, ticket.State) {
		t.Error("what is secret is sent along")
	}
	now = now.Add(Lasts - time.Second)
	if _, err := d.Open(sealed, answer); err != nil {
		t.Errorf("shortly before its end: %v", err)
	}
	now = now.Add(time.Second)
	if _, err := d.Open(sealed, answer); !errors.Is(err, ErrOver) {
		t.Errorf("at its end: %v", err)
	}
	now = now.Add(-time.Minute)
	keys = [][]byte{newKey(), keys[0]}
	if _, err := d.Open(sealed, answer); err != nil {
		t.Errorf("with another key that counts first: %v", err)
	}
	keys = keys[:1]
	if _, err := d.Open(sealed, answer); !errors.Is(err, ErrForged) {
		t.Errorf("with another key alone: %v", err)
	}
	for _, text := range []string{"", "x", "====", strings.Repeat("A", 16), strings.Repeat("A", MaxSealed+4), sealed + "A", sealed[1:]} {
		if _, err := d.Open(text, answer); !errors.Is(err, ErrForged) {
			t.Errorf("%q is read: %v", text, err)
		}
	}
	if _, _, err := d.Begin(t.Context(), example, "https://here/", Errand{Next: strings.Repeat("x", MaxSealed)}); err == nil {
		t.Error("more is sealed than fits into a cookie")
	}
}

// TestDiscovery asks once in a while, and believes a provider about itself alone.
func TestDiscovery(t *testing.T) {
	now, keys, asked := time.Unix(1_800_000_000, 0), [][]byte{newKey()}, 0
	begin := func(d *Desk, p Provider) error {
		_, _, err := d.Begin(t.Context(), p, "https://here/", Errand{})
		return err
	}
	d := desk(&now, &keys, sound, &asked)
	for range 5 {
		if err := begin(d, example); err != nil {
			t.Fatal(err)
		}
	}
	if now = now.Add(keepPlaces); begin(d, example) != nil || asked != 2 {
		t.Errorf("it was asked %d times", asked)
	}
	for _, doc := range []string{
		``, `[]`, `{}`, `{"issuer":1}`, strings.Replace(sound, "https://id.example/t", "http://id.example/t", 1), strings.Replace(sound, "https://id.example/a", "javascript:alert(1)", 1),
		strings.Replace(sound, `"https://id.example"`, `"https://other.example"`, 1), strings.Replace(sound, `"https://id.example"`, `"https://id.example/x"`, 1),
		strings.Replace(sound, "{", `{"code_challenge_methods_supported":["plain"],`, 1), strings.Replace(sound, "https://id.example/a", "https://a:b@id.example/a", 1),
		strings.Replace(sound, "{", `{"issuer":"https://id.example",`, 1), // of two, readers differ in which they believe
	} {
		if err := begin(desk(&now, &keys, doc, &asked), example); !errors.Is(err, ErrProvider) {
			t.Errorf("%s is believed: %v", doc, err)
		}
	}
	for _, p := range []Provider{{URL: "https://id.example"}, {URL: "http://id.example", ClientID: "c"}, {ClientID: "c"}, {URL: "https://a@id.example", ClientID: "c"}, {URL: "https:", ClientID: "c"}} {
		if asked = 0; begin(d, p) == nil || asked != 0 {
			t.Errorf("%+v is asked", p)
		}
	}
	for i := range maxPlaces + 10 {
		p := example
		p.URL = "https://id.example" + strings.Repeat("/x", i)
		d.known.note(p.URL, place{}, now.Add(time.Hour))
	}
	if len(d.known.places) > maxPlaces {
		t.Errorf("%d are remembered", len(d.known.places))
	}
}
