package console

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// unpacked is the page that a compressed one stands for; ok is whether it is compressed.
func (a *answer) unpacked() (page string, ok bool) {
	a.t.Helper()
	if a.Header.Get("Content-Encoding") != "gzip" {
		return a.body, false
	}
	r, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		a.t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(text), true
}

// TestFirstPage counts what a browser that was never here fetches before it shows the
// first page.
func TestFirstPage(t *testing.T) {
	b := admin(t, controller)
	for encoding, most := range map[string]int{"identity": 100_000, "gzip, deflate, br": 35_000} {
		page := b.get("/console/", "Accept-Encoding", encoding).is(http.StatusOK)
		text, _ := page.unpacked()
		size := len(page.body)
		for part := range strings.SplitSeq(text, `"`) {
			if strings.HasPrefix(part, "/console/assets/") {
				size += len(b.get(part, "Accept-Encoding", encoding).is(http.StatusOK).body)
			}
		}
		if size > most {
			t.Errorf("with %s the first page takes %d bytes in all", encoding, size)
		}
	}
}

// TestCompression looks at which answers are compressed: those that hold nothing of the
// request, for browsers that ask for it.
func TestCompression(t *testing.T) {
	b := admin(t, controller)
	for _, path := range []string{"/console/", "/console/identities", "/console/services/new"} {
		page, packed := b.get(path, "Accept-Encoding", "br;q=1.0, gzip;q=0.8").is(http.StatusOK).unpacked()
		plain, plainly := b.get(path, "Accept-Encoding", "identity").is(http.StatusOK).unpacked()
		if !packed || plainly || !strings.HasPrefix(page, "<!doctype html>") || !strings.HasPrefix(plain, "<!doctype html>") || !strings.HasSuffix(page, "</html>\n") {
			t.Errorf("%s is compressed: %t, and to who does not ask for it: %t", path, packed, plainly)
		}
		if _, packed := b.get(path, "Accept-Encoding", "deflate, gzip;q=0").unpacked(); packed {
			t.Errorf("%s is compressed for a browser that refuses it", path)
		}
	}
	action, form := b.get("/console/services/new").form(t)
	form.Set("f.name", "")
	for what, a := range map[string]*answer{
		"a filter": b.get("/console/identities?filter=x", "Accept-Encoding", "gzip"),
		"words":    b.get("/console/search?q=x", "Accept-Encoding", "gzip"),
		"a form":   b.post(action, form, "Accept-Encoding", "gzip").is(http.StatusBadRequest),
		"a login":  open(t, controller).post("/console/login", url.Values{"username": {"x"}, "password": {"y"}}, "Accept-Encoding", "gzip"),
	} {
		if page, packed := a.unpacked(); packed || !strings.Contains(page, "</html>") {
			t.Errorf("the answer to %s is compressed, so that its length tells what is in it", what)
		}
	}
}
