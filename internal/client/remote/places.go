package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
)

// places are the controllers of a network, the one first that is asked first.
type places struct {
	mu   sync.Mutex
	list []string
}

func newPlaces(a Account) *places {
	p := &places{list: []string{tidy(a.Address)}}
	for _, at := range a.Others {
		p.add(at)
	}
	if a.Prefer != "" {
		p.prefer(tidy(a.Prefer))
	}
	return p
}

// maxPlaces is how many controllers one keeps in mind.
const maxPlaces = 50

func (p *places) add(at string) {
	if at = tidy(at); at != "" && len(p.list) < maxPlaces && !slices.Contains(p.list, at) {
		p.list = append(p.list, at)
	}
}

// tidy is an address without a path.
func tidy(at string) string {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return at // whoever uses it is told
	}
	return "https://" + u.Host
}

// all returns the controllers in the order in which they are asked.
func (p *places) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

// prefer has a controller asked first from now on, if it is one of them.
func (p *places) prefer(at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.list, at); i > 0 {
		p.list = slices.Insert(slices.Delete(p.list, i, i+1), 0, at)
	}
}

// know takes up where the controllers are now. The one that is asked first stays
// where it is: somebody may have led us there by a name that only works here.
func (p *places) know(list []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = p.list[:1]
	for _, at := range list {
		p.add(at)
	}
}

// Address is where the controller is that is asked first.
func (c *Client) Address() string { return c.places.all()[0] }

// Places is where all controllers are that are known, the one first that is asked
// first.
func (c *Client) Places() []string { return c.places.all() }

// Revision is how much of all changes is known to have been made; who asks with it
// is not answered by a controller that knows less.
func (c *Client) Revision() int64 { return c.revision.Load() }

// Written is the same after the last change that was made with this client; 0 if
// there was none.
func (c *Client) Written() int64 { return c.written.Load() }

// Since has later calls see at least what there was at a revision.
func (c *Client) Since(revision int64) {
	for {
		old := c.revision.Load()
		if old >= revision || c.revision.CompareAndSwap(old, revision) {
			return
		}
	}
}

// revisionHeader is that of requests and answers which has it.
const revisionHeader = "netkeep-revision"

// note keeps how much whoever answers knows of.
func (c *Client) note(r Request, h http.Header) {
	rev, err := strconv.ParseInt(h.Get(revisionHeader), 10, 64)
	if err != nil {
		return
	}
	c.Since(rev)
	if r.Method != http.MethodGet {
		c.written.Store(rev)
	}
}

// outrun reports whether a refusal is of a store that does not know the revision
// that was shown: it was put in the place of the one that did. Then it counts no
// more.
func (c *Client) outrun(err error, shown int64) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && shown > 0 && e.Field == revisionHeader && c.revision.CompareAndSwap(shown, 0)
}

// Learn asks where all controllers of the network are, by a request for the list of
// them, and keeps in mind the addresses that they have for an API.
func (c *Client) Learn(ctx context.Context, api string, r Request) error {
	var list []struct {
		Addresses map[string][]struct {
			URL string `json:"url"`
		} `json:"apiAddresses"`
	}
	r.Method, r.Query = http.MethodGet, url.Values{"limit": {strconv.Itoa(maxPlaces)}}
	if err := c.Call(ctx, r, &list); err != nil {
		return err
	}
	var told []string
	for _, one := range list {
		for _, at := range one.Addresses[api] {
			told = append(told, at.URL)
		}
	}
	if len(told) < 2 {
		told = nil // the one that answers, whatever it calls itself
	}
	c.places.know(told)
	return nil
}

// looks reports whether it does no harm to make a request twice.
func (r Request) looks() bool { return r.Method == http.MethodGet || r.Repeatable }
