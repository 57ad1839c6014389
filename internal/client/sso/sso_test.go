package sso

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// browse is a browser that follows an address to its end, beside who waits for it.
func (p *provider) browse(pages chan<- string) func(string) error {
	return func(address string) error {
		go func() {
			resp, err := p.Client().Get(address)
			if err != nil {
				pages <- err.Error()
				return
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			pages <- string(body)
		}()
		return nil
	}
}

func (p *provider) signIn(change ...func(*Signer, *Options)) (*Tokens, string, error) {
	met, err := p.meet(change...)
	if err != nil {
		return nil, "", err
	}
	pages := make(chan string, 1)
	got, err := met.InBrowser(p.t.(*testing.T).Context(), p.browse(pages))
	return got, <-pages, err
}

func useID(s *Signer, _ *Options) { s.UseID, s.Audience = true, "laptop" }

// TestInBrowser signs in, gets newer tokens, and signs out.
func TestInBrowser(t *testing.T) {
	for name, change := range map[string]func(*Signer, *Options){"access": func(*Signer, *Options) {}, "id": useID} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			asked := url.Values{}
			p.back = func(answer url.Values) { asked = p.codes[answer.Get("code")] }
			got, page, err := p.signIn(change)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(page, "You are signed in.") || strings.Contains(page, got.Show) {
				t.Errorf("the page is %s", page)
			}
			back, err := url.Parse(asked.Get("redirect_uri"))
			if err != nil || back.Scheme != "http" || back.Hostname() != "127.0.0.1" || back.Path != callback {
				t.Errorf("it leads back to %q", asked.Get("redirect_uri"))
			}
			if asked.Get("scope") != "openid offline_access email" || asked.Get("code_challenge_method") != "S256" || asked.Get("nonce") == "" {
				t.Errorf("it was asked %v", asked)
			}
			if conn, err := net.Dial("tcp", back.Host); err == nil {
				conn.Close()
				t.Error("somebody still waits there")
			}
			if got.Subject != "ann" || got.Refresh == "" || !got.Good(time.Now()) || got.Good(time.Now().Add(5*time.Minute)) {
				t.Errorf("the tokens are %+v", got)
			}
			if text := fmt.Sprint(got); strings.Contains(text, got.Show) || strings.Contains(text, got.Refresh) {
				t.Error("tokens are printed")
			}
			met, err := p.meet(change)
			if err != nil {
				t.Fatal(err)
			}
			newer, err := met.Renew(t.Context(), got)
			if err != nil || newer.Refresh == got.Refresh || newer.Subject != "ann" {
				t.Fatalf("newer: %v, %v", newer, err)
			}
			if _, err := met.Renew(t.Context(), got); !errors.Is(err, ErrOver) {
				t.Errorf("what was used up is taken again: %v", err)
			}
			if err := met.SignOut(t.Context(), newer); err != nil || len(p.revoked) != 1 || p.revoked[0] != newer.Refresh || len(p.ended) != 1 || p.ended[0] != newer.ID {
				t.Errorf("signed out: %v, %v", p.revoked, err)
			}
		})
	}
}

// TestForgedAnswers has a provider, or somebody in its place, lead back with what does not
// belong to the sign-in, and give tokens that do not.
func TestForgedAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*provider)
		kind error
		says string
	}{
		"another state":    {func(p *provider) { p.back = func(a url.Values) { a.Set("state", "x") } }, ErrForged, "does not belong to this sign-in"},
		"two states":       {func(p *provider) { p.back = func(a url.Values) { a.Add("state", "x") } }, ErrForged, "does not belong to this sign-in"},
		"another issuer":   {func(p *provider) { p.back = func(a url.Values) { a.Set("iss", "https://other.example") } }, ErrForged, "of another provider"},
		"no issuer":        {func(p *provider) { p.back = func(a url.Values) { a.Del("iss") } }, ErrForged, "of another provider"},
		"no code":          {func(p *provider) { p.back = func(a url.Values) { a.Del("code") } }, ErrOdd, "no code"},
		"another's code":   {func(p *provider) { p.back = func(a url.Values) { a.Set("code", "x") } }, ErrDeclined, "invalid_grant"},
		"declined":         {func(p *provider) { p.back = func(a url.Values) { a.Set("error", "access_denied") } }, ErrDeclined, "begin again with netkeep login --sso"},
		"another nonce":    {func(p *provider) { p.claims = M{"nonce": "x"} }, ErrForged, "nonce"},
		"another audience": {func(p *provider) { p.claims = M{"aud": "other"} }, ErrForged, "audience"},
		"another party":    {func(p *provider) { p.claims = M{"azp": "other"} }, ErrForged, "another application"},
		"issuer of tokens": {func(p *provider) { p.claims = M{"iss": "https://other.example"} }, ErrForged, "different provider"},
		"another access":   {func(p *provider) { p.claims = M{"at_hash": half("x")} }, ErrForged, "another access token"},
		"ended":            {func(p *provider) { p.claims = M{"exp": time.Now().Add(-time.Hour).Unix()} }, ErrOver, "has ended"},
		"forged signature": {func(p *provider) {
			p.tokens = func(w http.ResponseWriter, given M) {
				given["id_token"] = given["id_token"].(string)[:len(given["id_token"].(string))-8] + "AAAAAAAA"
				write(w, given)
			}
		}, ErrForged, "signature"},
		"unsigned": {func(p *provider) {
			p.tokens = func(w http.ResponseWriter, given M) {
				parts := strings.Split(given["id_token"].(string), ".")
				given["id_token"] = "eyJhbGciOiJub25lIn0." + parts[1] + "."
				write(w, given)
			}
		}, ErrForged, "alg"},
		"no ID token": {func(p *provider) {
			p.tokens = func(w http.ResponseWriter, given M) { delete(given, "id_token"); write(w, given) }
		}, ErrOdd, "no ID token"},
		"token for others": {func(p *provider) {
			p.tokens = func(w http.ResponseWriter, given M) {
				given["access_token"] = p.sign(M{"aud": "mail"})
				given["id_token"] = p.sign(M{"aud": "laptop", "nonce": nonceOf(given)})
				write(w, given)
			}
		}, ErrForged, `for "mail", and the controller takes those for "netkeep"`},
		"ID token for us": {func(p *provider) {
			p.tokens = func(w http.ResponseWriter, given M) {
				given["access_token"] = p.sign(M{"aud": "openid"})
				given["id_token"] = p.sign(M{"aud": []string{"laptop", "netkeep"}, "nonce": nonceOf(given)})
				write(w, given)
			}
		}, ErrForged, "or set its targetToken to ID"},
		"opaque token": {func(p *provider) {
			p.tokens = func(w http.ResponseWriter, given M) {
				given["access_token"] = "opaque"
				given["id_token"] = p.sign(M{"aud": "laptop", "nonce": nonceOf(given)})
				write(w, given)
			}
		}, ErrOdd, "targetToken"},
		"clock ahead":  {func(p *provider) { p.ahead = -20 * time.Minute }, ErrOver, "ahead of the provider's: set it"},
		"clock behind": {func(p *provider) { p.ahead = 20 * time.Minute }, ErrOver, "behind the provider's: set it"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			c.do(p)
			got, page, err := p.signIn()
			advises(t, err)
			if !errors.Is(err, c.kind) || got != nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, %v", got, err)
			}
			if strings.Contains(page, "You are signed in.") || strings.Contains(page, "<script") {
				t.Errorf("the page is %s", page)
			}
		})
	}
}

// advises fails the test unless an error is one sentence that says what to do.
func advises(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	text := err.Error()
	if strings.Contains(text, "\n") || !slices.ContainsFunc([]string{
		"begin again with netkeep", "sign in again with netkeep", "sign in where", "sign in on another device", "have an admin", "try again", "set it",
	}, func(advice string) bool { return strings.Contains(text, advice) }) {
		t.Errorf("it does not say what to do: %s", text)
	}
}

// nonceOf is what the ID token that would have been given repeats.
func nonceOf(given M) any { return said(given["id_token"].(string), "nonce") }

// TestStrangers asks at the port that a browser is led back to as others could: the sign-in
// goes on, and its answer counts once.
func TestStrangers(t *testing.T) {
	p := newProvider(t)
	met, err := p.meet()
	if err != nil {
		t.Fatal(err)
	}
	pages := make(chan string, 1)
	_, err = met.InBrowser(t.Context(), func(address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		q := u.Query()
		back, state := q.Get("redirect_uri"), q.Get("state")
		at := strings.TrimSuffix(back, callback)
		for _, r := range []struct {
			method, url, host string
		}{
			{http.MethodGet, at + "/", ""}, {http.MethodGet, at + "/favicon.ico", ""}, {http.MethodGet, back, ""},
			{http.MethodPost, back + "?state=" + state + "&code=x", ""}, {http.MethodGet, back + "?state=" + state + "&code=x", "evil.example"},
		} {
			req, err := http.NewRequest(r.method, r.url, nil)
			if err != nil {
				return err
			}
			req.Host = r.host
			resp, err := p.Client().Do(req)
			if err != nil {
				return err
			}
			resp.Body.Close()
			if resp.StatusCode < 400 {
				t.Errorf("%+v is answered with %d", r, resp.StatusCode)
			}
		}
		return p.browse(pages)(address)
	})
	if page := <-pages; err != nil || !strings.Contains(page, "You are signed in.") {
		t.Errorf("%v: %s", err, page)
	}
}

// TestOddProviders meets providers that are away, lie, or have too much to say.
func TestOddProviders(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(http.ResponseWriter, M)
		kind error
		says string
	}{
		"another issuer": {func(w http.ResponseWriter, doc M) { doc["issuer"] = "https://other.example"; write(w, doc) }, ErrForged, "could take the place"},
		"without TLS": {func(w http.ResponseWriter, doc M) {
			doc["token_endpoint"] = strings.Replace(doc["token_endpoint"].(string), "https", "http", 1)
			write(w, doc)
		}, ErrOdd, "no address with https"},
		"a script": {func(w http.ResponseWriter, doc M) {
			doc["authorization_endpoint"] = "javascript:alert(1)"
			write(w, doc)
		}, ErrOdd, "no address with https"},
		"plain PKCE": {func(w http.ResponseWriter, doc M) {
			doc["code_challenge_methods_supported"] = []string{"plain"}
			write(w, doc)
		}, ErrOdd, "PKCE"},
		"no JSON": {func(w http.ResponseWriter, doc M) { io.WriteString(w, "<html>") }, ErrOdd, "have an admin look at the signer"},
		"missing": {func(w http.ResponseWriter, doc M) { w.WriteHeader(http.StatusNotFound) }, ErrOdd, "404"},
		"gigabytes": {func(w http.ResponseWriter, doc M) {
			for chunk := make([]byte, 64<<10); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, ErrOdd, "more than 1 MiB"},
		"breaks off": {func(w http.ResponseWriter, doc M) { w.Header().Set("Content-Length", "1000"); io.WriteString(w, "{") }, ErrAway, "breaks off"},
		"elsewhere": {func(w http.ResponseWriter, doc M) {
			w.Header().Set("Location", "https://other.example")
			w.WriteHeader(http.StatusFound)
		}, ErrOdd, "302"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.discovery = c.do
			_, err := p.meet()
			advises(t, err)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Error(err)
			}
		})
	}
	p := newProvider(t)
	p.Close()
	if _, err := p.meet(); !errors.Is(err, ErrAway) || !strings.Contains(err.Error(), "try again") {
		t.Error(err)
	}
	for name, s := range map[string]Signer{"no client": {Name: "x", URL: "https://id.example"}, "no TLS": {Name: "x", URL: "http://id.example", ClientID: "c"}} {
		if _, err := Meet(t.Context(), s, Options{Now: time.Now}); !errors.Is(err, ErrSigner) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPortTaken names a port that somebody else has.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := newProvider(t)
	met, err := p.meet(func(_ *Signer, o *Options) { o.Port = l.Addr().(*net.TCPAddr).Port })
	if err != nil {
		t.Fatal(err)
	}
	_, err = met.InBrowser(t.Context(), func(string) error { t.Error("a browser is led there"); return nil })
	if err == nil || !strings.Contains(err.Error(), "name another port with --sso-port") {
		t.Error(err)
	}
	advises(t, err)
}

// TestOnDevice signs in on another device, or does not.
func TestOnDevice(t *testing.T) {
	refusing := func(code string) func(http.ResponseWriter, int) bool {
		return func(w http.ResponseWriter, polls int) bool { refuse(w, code); return false }
	}
	for name, c := range map[string]struct {
		device func(http.ResponseWriter, int) bool
		kind   error
		says   string
	}{
		"good": {func(w http.ResponseWriter, polls int) bool {
			if polls == 1 {
				refuse(w, "authorization_pending")
			}
			return polls > 1
		}, nil, ""},
		"denied":  {refusing("access_denied"), ErrDeclined, "begin again"},
		"expired": {refusing("expired_token"), ErrOver, "not typed in time"},
		"odd":     {refusing("unauthorized_client"), ErrDeclined, "have an admin look at the signer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			p.device = c.device
			met, err := p.meet()
			if err != nil {
				t.Fatal(err)
			}
			var shown Prompt
			got, err := met.OnDevice(t.Context(), func(s Prompt) { shown = s })
			if shown.Code != "ABCD-EFGH" || shown.Address != p.URL+"/enter" || shown.Whole == "" {
				t.Errorf("the person is told %+v", shown)
			}
			advises(t, err)
			if !errors.Is(err, c.kind) || err != nil && !strings.Contains(err.Error(), c.says) || (got == nil) == (c.kind == nil) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		p := newProvider(t)
		met, err := p.meet()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := met.OnDevice(ctx, func(Prompt) { cancel() }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("none", func(t *testing.T) {
		p := newProvider(t)
		p.discovery = func(w http.ResponseWriter, doc M) { delete(doc, "device_authorization_endpoint"); write(w, doc) }
		met, err := p.meet()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := met.OnDevice(t.Context(), func(Prompt) {}); !errors.Is(err, ErrOdd) {
			t.Error(err)
		}
	})
}

// TestChoose names the signers that there are.
func TestChoose(t *testing.T) {
	one, two, mute := Signer{ID: "1", Name: "Corp", ClientID: "c"}, Signer{ID: "2", Name: "Guests", ClientID: "c"}, Signer{ID: "3", Name: "Robots"}
	for _, c := range []struct {
		all        []Signer
		name, want string
		says       string
	}{
		{[]Signer{one, mute}, "", "1", ""}, {[]Signer{one, two}, "guests", "2", ""}, {[]Signer{one, two}, "1", "1", ""},
		{[]Signer{one, two}, "", "", `name one with --signer: "Corp", "Guests"`},
		{[]Signer{one, two, mute}, "x", "", `there is no signer "x"; there is: "Corp", "Guests"`},
		{[]Signer{mute}, "", "", "have an admin"}, {nil, "x", "", "have an admin"},
	} {
		got, err := Choose(c.all, c.name, "--signer")
		if got.ID != c.want || (err == nil) != (c.says == "") || err != nil && (!errors.Is(err, ErrSigner) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q of %v: %v, %v", c.name, c.all, got, err)
		}
	}
}
