package console

import (
	"crypto/tls"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"netkeep.internal/test/servertest"
)

// browser is somebody at the console, without a script.
type browser struct {
	t    testing.TB
	http *http.Client
	at   string // https, host and port
}

// answer is a page.
type answer struct {
	*http.Response
	body string
	path string // where redirects ended
	t    testing.TB
}

func open(t testing.TB, s *servertest.Server) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return visitor(t, s, jar, s.TLS())
}

func visitor(t testing.TB, s *servertest.Server, jar http.CookieJar, config *tls.Config) *browser {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &browser{t: t, at: s.URL, http: &http.Client{Transport: transport, Jar: jar, Timeout: 2 * time.Minute}}
}

// admin is a browser that is logged in.
func admin(t testing.TB, s *servertest.Server) *browser {
	t.Helper()
	b := open(t, s)
	b.login(servertest.Username, servertest.Password).is(http.StatusOK)
	return b
}

func (b *browser) login(username, password string) *answer {
	b.t.Helper()
	return b.post("/console/login", url.Values{"username": {username}, "password": {password}, "next": {"/console/"}})
}

func (b *browser) get(path string, header ...string) *answer {
	b.t.Helper()
	return b.do(http.MethodGet, path, nil, header...)
}

// post sends a form as a browser sends that of a page of ours.
func (b *browser) post(path string, form url.Values, header ...string) *answer {
	b.t.Helper()
	return b.do(http.MethodPost, path, form, append([]string{"Sec-Fetch-Site", "same-origin", "Origin", "null"}, header...)...)
}

func (b *browser) do(method, path string, form url.Values, header ...string) *answer {
	b.t.Helper()
	req, err := http.NewRequest(method, b.at+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			req.Header.Del(header[i])
		}
	}
	resp, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return &answer{resp, string(text), resp.Request.URL.Path, b.t}
}

// is ends the test unless the answer has a status.
func (a *answer) is(status int) *answer {
	a.t.Helper()
	if a.StatusCode != status {
		a.t.Fatalf("%s %s: %s, want %d\n%s", a.Request.Method, a.path, a.Status, status, a.body)
	}
	return a
}

// says reports whether the page has a text, as people read it.
func (a *answer) says(text string) bool { return strings.Contains(html.UnescapeString(a.body), text) }

var (
	inputTag  = regexp.MustCompile(`<input [^>]*>`)
	areaTag   = regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]*)"[^>]*>\n?(.*?)</textarea>`)
	selectTag = regexp.MustCompile(`(?s)<select [^>]*name="([^"]*)"[^>]*>(.*?)</select>`)
	optionTag = regexp.MustCompile(`<option(?: value="([^"]*)")? selected>([^<]*)</option>`)
	attribute = regexp.MustCompile(`([a-z-]+)="([^"]*)"`)
	formTag   = regexp.MustCompile(`(?s)<form class="record"[^>]*action="([^"]*)".*?</form>`)
)

// form is the form of a record on the page, with all that its inputs hold.
func (a *answer) form(t testing.TB) (action string, in url.Values) {
	t.Helper()
	found := formTag.FindStringSubmatch(a.body)
	if found == nil {
		t.Fatalf("%s has no form: %s", a.path, a.body)
	}
	in = url.Values{}
	for _, tag := range inputTag.FindAllString(found[0], -1) {
		attributes := map[string]string{}
		for _, m := range attribute.FindAllStringSubmatch(tag, -1) {
			attributes[m[1]] = html.UnescapeString(m[2])
		}
		if attributes["type"] == "checkbox" && !strings.Contains(tag, " checked") {
			continue
		}
		in.Set(attributes["name"], attributes["value"])
	}
	for _, m := range areaTag.FindAllStringSubmatch(found[0], -1) {
		in.Set(m[1], html.UnescapeString(m[2]))
	}
	for _, m := range selectTag.FindAllStringSubmatch(found[0], -1) {
		in.Set(m[1], "")
		if o := optionTag.FindStringSubmatch(m[2]); o != nil {
			in.Set(m[1], html.UnescapeString(o[2]))
		}
	}
	return html.UnescapeString(found[1]), in
}

// names are those of all inputs on the page.
func (a *answer) names() map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(` name="([^"]*)"`).FindAllStringSubmatch(a.body, -1) {
		all[html.UnescapeString(m[1])] = true
	}
	return all
}
