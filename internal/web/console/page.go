package console

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets
var assetFiles embed.FS

// pages are the templates, each with the frame around it. They are read when the first
// page is asked for: most who start the program ask for none.
var pages = sync.OnceValue(func() map[string]*template.Template {
	frame := template.Must(template.New("frame").Funcs(template.FuncMap{"asset": assetPath, "grouped": grouped}).ParseFS(templateFiles, "templates/frame.html", "templates/parts.html", "templates/plan.html"))
	all := map[string]*template.Template{}
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		if name != "frame" && name != "parts" && name != "plan" {
			all[name] = template.Must(template.Must(frame.Clone()).ParseFS(templateFiles, "templates/"+f.Name()))
		}
	}
	return all
})

// asset is a file that pages use. Its address changes with what is in it, so that
// browsers can keep it.
type asset struct {
	data   []byte
	typ    string
	packed func() []byte // the same compressed, once
}

var (
	assets     = map[string]asset{}  // by the name in the address
	assetPaths = map[string]string{} // by the name of the file
	assetTypes = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
)

func init() {
	files, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		data, err := assetFiles.ReadFile("assets/" + f.Name())
		if err != nil {
			panic(err)
		}
		sum, ext := sha256.Sum256(data), path.Ext(f.Name())
		name := strings.TrimSuffix(f.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		assets[name], assetPaths[f.Name()] = asset{data, assetTypes[ext], sync.OnceValue(func() []byte { return shrunk(data) })}, Root+"assets/"+name
	}
}

// assetPath is where a file is.
func assetPath(file string) string { return assetPaths[file] }

// serveAsset answers with a file.
func serveAsset(w http.ResponseWriter, r *http.Request, name string) {
	a, ok := assets[name]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "there is nothing here", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", a.typ)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Vary", "Accept-Encoding")
	if takesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(a.packed())
		return
	}
	_, _ = w.Write(a.data)
}

// page is what every page has.
type page struct {
	Title string
	Body  any
	Bare  bool // without the ways to other pages
	// Live is what kinds of records the page is about, so that it follows their changes.
	Live string
	// Every is after how many seconds a page looks again that nobody tells of changes.
	Every int

	Person, Token, Version string
	Nav                    []navGroup
}

// show answers with a page.
func (v *visit) show(status int, name string, p page) {
	p.Person, p.Version = v.person, v.Version
	if v.token != "" {
		p.Token = formToken(v.token)
	}
	if !p.Bare && v.person != "" {
		p.Nav = v.nav()
	}
	var b bytes.Buffer
	if err := pages()[name].ExecuteTemplate(&b, "frame", p); err != nil {
		v.Log.Error("a page of the console could not be made", "page", name, "error", err)
		http.Error(v.w, "The page could not be made; the log of the controller says why.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	body := v.packed(b.Bytes())
	v.w.WriteHeader(status)
	if v.r.Method != http.MethodHead {
		_, _ = v.w.Write(body)
	}
}

// notice is a page that says something and nothing else.
type notice struct{ Head, Text, Request string }

// refuse says why a page is not shown.
func (v *visit) refuse(status int, head, text string) {
	v.show(status, "notice", page{Title: head, Body: notice{Head: head, Text: text}})
}

func (v *visit) missing() {
	v.refuse(http.StatusNotFound, "There is nothing here", "It may have been deleted, or the address is not quite right.")
}

// fail says what went wrong.
func (v *visit) fail(err error) {
	var f *failure
	switch {
	case !errors.As(err, &f):
		v.Log.Error("a page of the console could not be made", "path", v.r.URL.Path, "error", err)
		v.refuse(http.StatusInternalServerError, "Something went wrong", "The log of the controller says what.")
	case f.status == http.StatusNotFound:
		v.missing()
	case f.status == http.StatusUnauthorized && v.person != "":
		why := cmp.Or(f.lacks(), "It takes an admin role that allows it.")
		v.refuse(http.StatusForbidden, "Not for you", "You are logged in as "+v.person+", who may not do this. "+why+" Ask an admin for it, or log in as somebody who has it.")
	default:
		head := "This did not work"
		if f.status >= http.StatusInternalServerError || f.status == http.StatusTooManyRequests {
			head = "The controller cannot do this at the moment"
			v.w.Header().Set("Retry-After", "5")
		}
		v.show(f.status, "notice", page{Title: head, Body: notice{head, f.says(), f.Request}})
	}
}
