package api

import (
	"net/http"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/web/rest"
)

// Elsewhere is an operation that later versions of the contract have and that is not
// offered: who calls it is told what to do instead.
type Elsewhere struct {
	Op  rest.Op
	Why string // a sentence without its full stop
}

// notOffered is how what an operation does is told that does nothing.
const notOffered = "Not offered here: "

// MountElsewhere adds some.
func MountElsewhere(a *rest.API, list []Elsewhere) {
	for _, e := range list {
		op := e.Op
		op.Doc = notOffered + e.Why + "."
		rest.Handle(a, op, func(*rest.Call, rest.None) (rest.Empty, error) {
			return rest.Empty{}, fault.New(fault.CodeMethod, e.Why)
		})
	}
}

// MountNone adds a list of what there never is any of.
func MountNone(a *rest.API, op rest.Op) {
	op.Method, op.Entries = http.MethodGet, kind.Schema{"type": "object", "description": "There is none."}
	rest.Handle(a, op, func(*rest.Call, rest.None) (rest.List, error) { return rest.List{Fields: []string{}}, nil })
}

// capabilities are all that a controller may say that it can, whether it does or not.
var capabilities = []string{"OIDC_AUTH", "HA_CONTROLLER"}

// mountLater adds what later versions of the contract have in both APIs.
func mountLater(a *rest.API) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/enumerated-capabilities", Name: "listEnumeratedCapabilities", Tag: "informational", Auth: rest.Anonymous,
		Doc: "List the words that capabilities of a controller may have, whether it has them or not.", Entries: kind.Described(Text, "One of the words."),
	}, func(*rest.Call, rest.None) (rest.List, error) {
		return rest.List{
			Page: filter.Page{Limit: int64(len(capabilities))}, Total: int64(len(capabilities)), Fields: []string{}, Len: len(capabilities),
			Append: func(dst []byte, i int) []byte { return kind.AppendText(dst, capabilities[i]) },
		}, nil
	})
}
