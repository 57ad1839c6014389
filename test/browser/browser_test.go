// Package browser opens the console in headless Chromium: every page that a link leads
// to, every form, by the keyboard alone once through, in light and dark and three widths.
// No page may write an error to the browser's console, break the content security policy,
// ask another host, or fail the rules of axe-core. Screenshots are left in bin/browser.
// There is one browser for all tests; each has a window with cookies of its own.
package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// bin is where the program is, and where pictures go.
var bin = func() string {
	path, err := filepath.Abs("../../bin")
	if err != nil {
		panic(err)
	}
	return path
}()

// controller is a program that runs.
type controller struct{ address, password, data string }

var welcomed = regexp.MustCompile(`(?s)netkeep is ready at https://(\S+)\n.*The first admin is admin with the password (\S+)\n.*The console is at (https://\S+)\n.*SHA-256 [0-9a-f]{64}\n`)

// start runs a controller with an empty directory until the test ends.
func start(t *testing.T) controller {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command(filepath.Join(bin, "netkeep"), "run", "--data", data, "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--router", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	text, lines := "", bufio.NewScanner(out)
	for lines.Scan() {
		text += lines.Text() + "\n"
		if m := welcomed.FindStringSubmatch(text); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			if m[3] != "https://"+m[1]+"/console/" {
				t.Errorf("the console is at %s", m[3])
			}
			return controller{"https://" + m[1], m[2], data}
		}
	}
	t.Fatalf("the controller did not say that it is ready: %s", text)
	return controller{}
}

// run runs a command of the program.
func (c controller) run(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "netkeep"), args...)
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Dir(c.data), "HOME="+filepath.Dir(c.data), "NETKEEP_PASSWORD="+c.password)

	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("netkeep %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// faults are what a browser found wrong.
type faults struct {
	sync.Mutex
	list []string
}

func (f *faults) note(format string, args ...any) {
	f.Lock()
	defer f.Unlock()
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// take returns what was found since it was last asked for.
func (f *faults) take() []string {
	f.Lock()
	defer f.Unlock()
	list := f.list
	f.list = nil
	return list
}

// docs is where the pictures of the documentation go; they are not made if it is empty.
var docs = flag.String("docs", "", "directory for the pictures of the documentation")

// chromium is the browser.
var chromium context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.IgnoreCertErrors, chromedp.WindowSize(1280, 800))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(alloc)
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	chromium = ctx
	code := m.Run()
	end()
	stop()
	os.Exit(code)
}

// browser is a tab of a window.
type browser struct {
	t   *testing.T
	ctx context.Context
	at  controller
	faults
}

// open opens a window, which trusts the controller for the sake of the test.
func open(t *testing.T, c controller) *browser {
	t.Helper()
	ctx, end := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	return watched(t, ctx, c)
}

// tab opens another tab of the window, for another test.
func (b *browser) tab(t *testing.T) *browser {
	t.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	t.Cleanup(end)
	return watched(t, ctx, b.at)
}

// watched notes what the browser says of a tab, and whom it asks.
func watched(t *testing.T, ctx context.Context, c controller) *browser {
	t.Helper()
	ctx, end := context.WithTimeout(ctx, 8*time.Minute) // for what would never end
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx, at: c}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	messages, requests := chromedp.Console(ctx), chromedp.Events(ctx, network.RequestWillBeSent)
	go func() {
		for m, err := range messages {
			if err == nil && !expected(m) {
				b.note("the browser says: %s", m)
			}
		}
	}()
	go func() {
		for e, err := range requests {
			if err != nil {
				continue
			}
			if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" && u.Scheme != "about" && "https://"+u.Host != c.address {
				b.note("the page asks %s", e.Request.URL)
			}
		}
	}()
	return b
}

// expected reports whether the browser has to say something about an answer that is an
// error on purpose, or about what is no error.
func expected(m chromedp.ConsoleMessage) bool {
	refused := m.Source == "network" && strings.Contains(m.Text, "status of 4")
	return refused || m.Type == "debug" || m.Type == "info"
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// value is what an action returns.
func value[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// What is done to the first element of a page that a selector finds.
func shown(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.WaitVisible(chromedp.CSS(selector))
}
func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}
func focus(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Focus(chromedp.CSS(selector))
}
func typed(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(chromedp.CSS(selector), text)
}

// visit opens a page of the console.
func (b *browser) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.at.address+path), shown("main"))
}

// press sends keys, one after the other.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	for _, k := range keys {
		b.do(chromedp.KeyEvent(k))
	}
}

// strike presses a key that does something and types nothing.
func (b *browser) strike(key, code string) {
	b.t.Helper()
	for _, typ := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: typ, Key: key, Code: code}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *browser) login() {
	b.t.Helper()
	b.visit("/console/")
	b.do(typed("#username", "admin"), typed("#password", b.at.password+kb.Enter), shown("nav"))
}

// text is what an element says.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return value(b, chromedp.Text(chromedp.CSS(selector)))
}

// eventually waits until a script says true, on this page or on one that comes after it.
func (b *browser) eventually(what, script string) {
	b.t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if _, err = chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](script, chromedp.WithPollingTimeout(time.Until(end)))); err == nil {
			return
		}
	}
	now, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + ' ' + document.activeElement.outerHTML.slice(0, 200) + ' ' + document.body.innerText.slice(0, 2000)`))
	b.t.Fatalf("%s: %v\n%s", what, err, now)
}

// fine fails the test for everything that is wrong with the page.
func (b *browser) fine(what string) {
	b.t.Helper()
	for _, fault := range b.take() {
		b.t.Errorf("%s: %s", what, fault)
	}
}

var axe = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile(filepath.Join(bin, "browser", "axe.min.js"))
	return string(text), err
})

// The rules that every look at a page is held to, and those that do not depend on how wide
// the window is or on the colours, which one look decides.
const (
	allRules    = `{type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']}`
	colourRules = `{type: 'rule', values: ['color-contrast', 'link-in-text-block']}`
	widthRules  = `{type: 'rule', values: ['scrollable-region-focusable', 'region', 'bypass', 'target-size', 'landmark-one-main', 'aria-hidden-focus', 'focus-order-semantics']}`
)

// accessible has axe-core look at the page.
func (b *browser) accessible(what, rules string) {
	b.t.Helper()
	script, err := axe()
	if err != nil {
		b.t.Fatal(err)
	}
	if !value(b, chromedp.Evaluate[bool](`'axe' in window`)) {
		b.do(chromedp.Evaluate[chromedp.Void](script))
	}
	found := value(b, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ['violations'], runOnly: `+rules+`}).then(r => JSON.stringify(
		r.violations.map(v => [v.id, v.help, ...v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + n.failureSummary)])))`, chromedp.EvalAwaitPromise))
	var violations [][]string
	if err := json.Unmarshal([]byte(found), &violations); err != nil {
		b.t.Fatal(err)
	}
	for _, v := range violations {
		b.t.Errorf("%s: %s", what, strings.Join(v, "\n\t"))
	}
}

// look is how a page is looked at.
type look struct {
	scheme, width string
	px            int64
	rules         string
}

var everyLook = flag.Bool("every-look", false, "look at each page in light and dark and at each width, instead of in three of the six")

// looks are those in light and dark, on a phone, in a small window and in a wide one. The
// first three have each of them once.
func looks() []look {
	all := []look{
		{"light", "wide", 1600, allRules}, {"light", "phone", 390, widthRules}, {"dark", "window", 1024, colourRules},
		{"light", "window", 1024, widthRules}, {"dark", "phone", 390, colourRules}, {"dark", "wide", 1600, colourRules},
	}
	if !*everyLook {
		return all[:3]
	}
	return all
}

// look makes sure that nobody has trouble with the page in any look, that nothing is wider
// than the window, and leaves pictures.
func (b *browser) look(name string) {
	b.t.Helper()
	for _, l := range looks() {
		b.dressed(l.scheme, l.px, 900)
		what := name + " in " + l.scheme + ", " + l.width
		if value(b, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`)) {
			b.t.Errorf("%s is wider than the window", what)
		}
		b.accessible(what, l.rules)
		b.picture(filepath.Join(bin, "browser", name+"-"+l.scheme+"-"+l.width+".png"), true)
	}
	b.fine(name)
}

// picture leaves a picture of the page, made quickly or as small as it can be.
func (b *browser) picture(path string, quick bool) {
	b.t.Helper()
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{OptimizeForSpeed: &quick})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, shot.Data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// dressed has the window another look and size.
func (b *browser) dressed(scheme string, width, height int64) {
	b.t.Helper()
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(width, height))
}
