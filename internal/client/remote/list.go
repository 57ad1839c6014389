package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// List is what to list.
type List struct {
	Path   string // below Root
	Filter string
	Sort   string
	Limit  int64 // how many at most; 0 for all
	Query  url.Values
	// Progress, if set, is told how many have come, of how many.
	Progress func(done, total int64)
}

const (
	// page is how many records a controller answers with at a time.
	page = 500
	// ahead is how many pages are asked for at a time.
	ahead = 3
)

// Page is some records of a list and how many there are in all.
type Page struct {
	Records []jsontext.Value
	Total   int64
}

// Each calls fn with every record of a list, in its order, and returns how
// many there are. A list that is larger than a page is read page after page: a
// record that is made or deleted meanwhile may be missed. It ends with a page
// that is empty, however many a controller says there are.
func (c *Client) Each(ctx context.Context, l List, fn func(jsontext.Value) error) (total int64, err error) {
	first, err := c.Page(ctx, l, 0)
	if err != nil {
		return 0, err
	}
	want := first.Total
	if l.Limit > 0 {
		want = min(want, l.Limit)
	}
	done := int64(0)
	give := func(p Page) error {
		for _, rec := range p.Records {
			if done == want {
				return nil
			}
			if err := fn(rec); err != nil {
				return err
			}
			done++
		}
		if l.Progress != nil {
			l.Progress(done, want)
		}
		return nil
	}
	if err := give(first); err != nil {
		return 0, err
	}
	for p := range c.pages(ctx, l, want) {
		if p.err != nil {
			return 0, p.err
		}
		if len(p.Records) == 0 {
			break
		}
		if err := give(p.Page); err != nil {
			return 0, err
		}
	}
	return first.Total, nil
}

type fetched struct {
	Page
	err error
}

// pages yields the pages after the first, some of them read ahead.
func (c *Client) pages(ctx context.Context, l List, want int64) func(yield func(fetched) bool) {
	return func(yield func(fetched) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer cancel()
		var queue []chan fetched
		next := int64(page)
		for {
			for len(queue) < ahead && next < want {
				at, answer := next, make(chan fetched, 1)
				wg.Go(func() {
					p, err := c.Page(ctx, l, at)
					answer <- fetched{p, err}
				})
				queue = append(queue, answer)
				next += page
			}
			if len(queue) == 0 || !yield(<-queue[0]) {
				return
			}
			queue = queue[1:]
		}
	}
}

// Page reads one page of a list.
func (c *Client) Page(ctx context.Context, l List, offset int64) (Page, error) {
	limit := int64(page)
	if l.Limit > 0 {
		limit = min(limit, l.Limit-offset)
	}
	q := url.Values{}
	for name, values := range l.Query {
		q[name] = values
	}
	q.Set("limit", strconv.FormatInt(limit, 10))
	if offset > 0 {
		q.Set("offset", strconv.FormatInt(offset, 10))
	}
	if l.Filter != "" {
		q.Set("filter", l.Filter)
	}
	if l.Sort != "" {
		q.Set("sort", l.Sort)
	}
	body, err := c.open(ctx, Request{Method: http.MethodGet, Path: l.Path, Query: q})
	if err != nil {
		return Page{}, err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return Page{}, c.broken(err)
	}
	var list struct {
		Data []jsontext.Value `json:"data"`
		Meta struct {
			Pagination struct {
				TotalCount int64 `json:"totalCount"`
			} `json:"pagination"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return Page{}, fmt.Errorf("%s answered with something that is no list: %w", c.Address(), err)
	}
	// Some lists have no pages.
	total := max(list.Meta.Pagination.TotalCount, int64(len(list.Data)))
	return Page{list.Data, total}, nil
}
