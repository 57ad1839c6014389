package browser

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// long is a name of a hundred characters.
var long = strings.Repeat("long-name-", 10)

// TestConsole goes through the console as somebody does who looks after a network: every
// form is used, and every page opened that a link leads to.
func TestConsole(t *testing.T) {
	c := start(t)
	b := open(t, c)
	b.visit("/console/")
	b.look("login")
	b.do(typed("#username", "admin"), typed("#password", "not the password"+kb.Enter), shown(".problem"))
	b.look("login-refused")
	b.login()
	b.look("overview-empty")
	b.visit("/console/services")
	b.look("services-empty")

	// The rest has something to show.
	c.run(t, "login", "--data", c.data, "--username", "admin")
	c.run(t, "demo")
	b.illustrate()
	c.run(t, "create", "identity", long, "--type", "User", "--roles", strings.Join([]string{long + "1", "staff", "a", "b", "c", "d", "e", "f"}, ","))
	c.run(t, "create", "service", "<script>alert(1)</script>")
	made := b.useForms()
	b.walk(t,
		stop{"identities?filter=nme+%3D+1", "identities-wrong-filter"}, stop{"identities?filter=nothing-like-it", "identities-none"}, stop{"identities?wide=1", "identities-all-columns"},
		stop{"identities/none", "missing"}, stop{"search?q=pay", "search-found"}, stop{"search?q=nothing-like-it", "search-none"},
		stop{b.first("identities?filter=" + long[:20]), "identity-long"}, stop{b.first("services?filter=script"), "service-script"},
	)
	b.undo(made)
}

// first is the path of the first record of a table.
func (b *browser) first(table string) string {
	b.t.Helper()
	b.visit("/console/" + table)
	return strings.TrimPrefix(value(b, chromedp.Evaluate[string](`document.querySelector('a.row').getAttribute('href')`)), "/console/")
}

// walk looks at every page of the console: those that are named, and those that links lead
// to from there, one of each sort.
func (b *browser) walk(t *testing.T, more ...stop) {
	t.Helper()
	w := &way{seen: map[string]bool{}}
	w.ready.L = w
	w.add("/console/")
	for _, s := range more {
		w.queue = append(w.queue, stop{"/console/" + s.path, s.name})
	}
	t.Run("walk", func(t *testing.T) {
		for i := range 2 {
			t.Run(fmt.Sprint("tab ", i+1), func(t *testing.T) {
				t.Parallel()
				tab := b.tab(t)
				for s, ok := w.next(); ok; s, ok = w.next() {
					tab.lookAt(s, w)
				}
			})
		}
	})
	if n := len(w.seen); n < 60 {
		t.Errorf("links lead to %d pages", n)
	}
}

// lookAt looks at a page, and takes note of where its links lead.
func (b *browser) lookAt(s stop, w *way) {
	b.t.Helper()
	defer w.done() // also if it gives up: others wait for it
	b.visit(s.path)
	b.look(s.name)
	w.add(value(b, chromedp.Evaluate[[]string](`Array.from(document.querySelectorAll('nav a[href^="/console/"], main a[href^="/console/"]'), a => a.getAttribute('href'))`))...)
}

// way is the pages that are still to be looked at.
type way struct {
	sync.Mutex
	ready sync.Cond
	queue []stop
	seen  map[string]bool // sorts of pages
	busy  int             // how many pages are being looked at
}

// stop is a page, and what its pictures are called.
type stop struct{ path, name string }

// add takes note of links, unless there was one to a page of the same sort.
func (w *way) add(paths ...string) {
	w.Lock()
	defer w.Unlock()
	for _, path := range paths {
		if sort := sortOf(path); sort != "" && !w.seen[sort] {
			w.seen[sort] = true
			w.queue = append(w.queue, stop{path, strings.Map(plain, sort)})
		}
	}
	w.ready.Broadcast()
}

// next is the next page; it waits for links while pages are being looked at.
func (w *way) next() (stop, bool) {
	w.Lock()
	defer w.Unlock()
	for len(w.queue) == 0 && w.busy > 0 {
		w.ready.Wait()
	}
	if len(w.queue) == 0 {
		return stop{}, false
	}
	s := w.queue[0]
	w.queue = w.queue[1:]
	w.busy++
	return s, true
}

func (w *way) done() {
	w.Lock()
	defer w.Unlock()
	w.busy--
	w.ready.Broadcast()
}

// sortOf is what a page shares with those of its sort: not which record it shows, nor in
// which order. It is empty for what is no page to look at.
func sortOf(path string) string {
	u, err := url.Parse(path)
	if err != nil {
		return ""
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, "/console/"), "/")
	switch parts[0] {
	case "":
		parts[0] = "overview"
	case "assets", "events", "logout", "login":
		return ""
	}
	if len(parts) > 1 && parts[1] != "new" {
		parts[1] = "record"
	}
	if parts[0] == "api" && len(parts) > 2 { // an operation is like others with the same verb
		parts[2] = parts[2][:max(1, strings.IndexFunc(parts[2]+"A", unicode.IsUpper))]
	}
	var keys []string
	for key := range u.Query() {
		if !slices.Contains([]string{"filter", "sort", "from", "wide", "column", "q"}, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return strings.Join(append(parts, keys...), "/")
}

// plain are the letters of names of files.
func plain(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// illustrate makes the pictures of the documentation, if they are asked for.
func (b *browser) illustrate() {
	if *docs == "" {
		return
	}
	b.t.Helper()
	b.dressed("light", 1200, 750)
	for name, path := range map[string]string{"overview": "", "identities": "identities", "identity": b.first("identities?filter=carol"), "access": "access?identity=carol", "explain": "explain?identity=bob&service=payroll"} {
		b.visit("/console/" + path)
		b.picture(filepath.Join(*docs, "console-"+name+".png"), false)
	}
}
