// Package console is the pages by which people look after a network in a browser. It
// owns how pages look, the cookie that a browser is known by, and how forms become
// requests. It asks everything of the Management and Fabric APIs, in process and with
// the person's own session, and makes its tables and forms of the descriptors of kinds
// and operations: it decides nothing, and knows no rule of its own. Of ours it imports
// lang, ops/limit and web/signon, and must not import state, policy, fabric or model.
package console

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/ops/limit"
	"netkeep.internal/internal/web/signon"
)

// Root is where the console is. All its pages are below.
const Root = "/console/"

// Console is the pages of a controller.
type Console struct {
	// APIs answers the requests of pages, below the roots of both APIs.
	APIs                       http.Handler
	ManagementRoot, FabricRoot string
	// ClientRoot is where strangers are told whom they can log in with, Admits says of
	// which signers that would let any admin in, and SignOn sends people there; Away is
	// how many may be on their way at once.
	ClientRoot string
	Admits     func(signer string) bool
	SignOn     *signon.Desk
	Away       *limit.Slots
	// Fields lists what the body of an operation of the Management API may hold; ok
	// is false if there is no such operation.
	Fields func(method, path string) (fields []*kind.Field, ok bool)
	Kinds  *kind.Catalog
	// Bodies bounds the memory that forms take while they are read, Pace how fast
	// they must arrive, and MaxBody how large one may be.
	Bodies  *limit.Bodies
	Pace    limit.Pace
	MaxBody int64
	Version string
	Now     func() time.Time
	Log     *slog.Logger

	docs  apiDocs
	since atomic.Pointer[time.Time] // when the last day begins, as it was last told
}

// ServeHTTP is for [http.Handler]. It is asked for what Below says is the console's.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	guard(w.Header())
	rest, below := strings.CutPrefix(r.URL.Path, Root)
	if !below {
		http.Redirect(w, r, Root, http.StatusPermanentRedirect)
		return
	}
	if name, ok := strings.CutPrefix(rest, "assets/"); ok {
		serveAsset(w, r, name)
		return
	}
	v := &visit{Console: c, w: w, r: r}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		if foreign(r) {
			v.refuse(http.StatusForbidden, "This came from another site", "Nothing was done. Open the console by itself and try again there.")
			return
		}
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		v.refuse(http.StatusMethodNotAllowed, "Not like this", "Pages are asked for with GET, and forms are sent with POST.")
		return
	}
	v.route(strings.Split(strings.TrimSuffix(rest, "/"), "/"))
}

// Below reports whether a path is the console's.
func Below(path string) bool {
	return path == strings.TrimSuffix(Root, "/") || strings.HasPrefix(path, Root)
}

// route leads a request to its page.
func (v *visit) route(parts []string) {
	switch parts[0] {
	case "login":
		v.login()
		return
	case "code":
		v.code()
		return
	case "provider":
		v.provider()
		return
	case "logout":
		v.logout()
		return
	}
	if !v.known() {
		return
	}
	switch {
	case len(parts) == 1 && parts[0] == "":
		v.overview()
	case len(parts) == 1 && parts[0] == "search":
		v.search()
	case len(parts) == 1 && parts[0] == "events":
		v.events()
	case slices.Contains(reasonPages, parts[0]):
		v.reason(parts)
	case parts[0] == "invite":
		v.invite(parts)
	case len(parts) == 1 && parts[0] == "suggest":
		v.suggest()
	case parts[0] == "api":
		v.apiPages(parts)
	case v.picture(parts):
	default:
		v.records(parts)
	}
}

// records leads to the pages of a kind.
func (v *visit) records(parts []string) {
	d := v.kindAt(parts[0])
	if d == nil || len(parts) > 3 {
		v.missing()
		return
	}
	of := resource{v.Console, d}
	switch {
	case len(parts) == 1:
		v.table(of)
	case len(parts) == 2 && parts[1] == "new":
		v.create(of)
	case len(parts) == 2:
		v.record(of, parts[1])
	case parts[2] == "edit":
		v.edit(of, parts[1])
	case parts[2] == "history":
		v.recordHistory(of, parts[1])
	case parts[2] == "delete":
		v.delete(of, parts[1])
	default:
		v.related(of, parts[1], parts[2])
	}
}

// kindAt is the kind whose records are at a path; nil if pages show none there.
func (c *Console) kindAt(path string) *kind.Def {
	for _, d := range c.Kinds.Defs {
		if d.Path == path && d.Verbs.Has(kind.Lists|kind.Gets) {
			return d
		}
	}
	return nil
}

// resource is a kind with where it is.
type resource struct {
	console *Console
	*kind.Def
}

// at is where the API has the records.
func (of resource) at() string {
	if of.Lane == kind.Volatile {
		return of.console.FabricRoot + "/" + of.Path
	}
	return of.console.ManagementRoot + "/" + of.Path
}

// page is the path of the table, or of a page below it.
func (of resource) page(parts ...string) string { return link(append([]string{of.Path}, parts...)...) }

// hasName reports whether people call the records by a name.
func (of resource) hasName() bool { return of.Field("name") != nil }

// one and many are the kind in words.
func (of resource) one() string  { return strings.ReplaceAll(of.Name, "-", " ") }
func (of resource) many() string { return strings.ReplaceAll(of.Path, "-", " ") }

// creates and edits return what a form has, if there is one.
func (of resource) creates() ([]*kind.Field, bool) {
	if !of.Verbs.Has(kind.Creates) {
		return nil, false
	}
	return of.console.Fields(http.MethodPost, "/"+of.Path)
}

func (of resource) edits() ([]*kind.Field, bool) {
	if !of.Verbs.Has(kind.Patches) {
		return nil, false
	}
	return of.console.Fields(http.MethodPatch, "/"+of.Path+"/{id}")
}

// listed reports whether a list of changes can hold changes of the records: those
// are planned first, and may have names in the place of ids.
func (of resource) listed() bool {
	_, replaces := of.console.Fields(http.MethodPut, "/"+of.Path+"/{id}")
	fields, _ := of.edits()
	return replaces && of.InFiles || replaces && of.Verbs.Has(kind.CRUD) && own(of.Def, fields)
}

// own reports whether fields are those of the kind, and not those of an operation that
// has some of its own.
func own(d *kind.Def, fields []*kind.Field) bool {
	for _, f := range fields {
		if d.Field(f.Name) != f {
			return false
		}
	}
	return true
}

// deletes reports whether records can be deleted.
func (of resource) deletes() bool { return of.Verbs.Has(kind.Deletes) }
