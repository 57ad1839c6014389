package rest

import (
	"strconv"

	"netkeep/internal/lang/fault"
	"netkeep/internal/lang/filter"
	"netkeep/internal/lang/kind"
)

// listParams are the query parameters of every list.
var listParams = []Param{
	{Name: "limit", Doc: "How many entries at most; 10 if not given, 500 at most, -1 for all.", Schema: kind.Schema{"type": "integer"}},
	{Name: "offset", Doc: "How many entries to leave out.", Schema: kind.Schema{"type": "integer"}},
	{Name: "filter", Doc: "Which entries, in which order: `name contains \"x\" sort by name limit 5`.", Schema: kind.Schema{"type": "string"}},
}

// Query compiles the filter, sort and paging parameters of a list request.
func Query[R any](c *Call, schema *filter.Schema[R]) (*filter.Query[R], filter.Page, error) {
	params := c.Request.URL.Query()
	q, err := filter.Compile(schema, params.Get("filter"))
	if err != nil {
		return nil, filter.Page{}, err
	}
	if q, err = q.SortedBy(params.Get("sort")); err != nil {
		return nil, filter.Page{}, err
	}
	limit, err := number(params.Get("limit"), "limit")
	if err != nil {
		return nil, filter.Page{}, err
	}
	offset, err := number(params.Get("offset"), "offset")
	if err != nil {
		return nil, filter.Page{}, err
	}
	return q, q.Page(limit, offset), nil
}

func number(text, name string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, fault.Invalid(name, "must be a whole number", text)
	}
	return &n, nil
}

// List answers with a page of something.
type List struct {
	Page   filter.Page
	Total  int64
	Fields []string // names that filters may use
	Len    int
	// Append adds the JSON of entry i.
	Append func(dst []byte, i int) []byte
}

func (List) describe(o *operation) {
	o.list = true
	o.data = kind.ListOf(kind.Schema{"type": "object"})
	o.Query = append(o.Query, listParams...)
}

func (l List) send(c *Call) error {
	return c.build(c.op.status, func(dst []byte) []byte {
		dst = append(dst, `{"data":[`...)
		for i := range l.Len {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = l.Append(dst, i)
		}
		dst = append(dst, `],"meta":{"filterableFields":`...)
		dst = kind.AppendTexts(dst, l.Fields)
		dst = append(dst, `,"pagination":{"limit":`...)
		dst = strconv.AppendInt(dst, l.Page.Limit, 10)
		dst = append(dst, `,"offset":`...)
		dst = strconv.AppendInt(dst, l.Page.Offset, 10)
		dst = append(dst, `,"totalCount":`...)
		dst = strconv.AppendInt(dst, l.Total, 10)
		return append(dst, `}}}`...)
	})
}

// Texts answers with a page of plain texts, which filters call id.
type Texts struct {
	Page  filter.Page
	Total int64
	Items []string
}

func (Texts) describe(o *operation) {
	List{}.describe(o)
	o.data = kind.ListOf(text)
}

func (t Texts) send(c *Call) error {
	return List{
		Page: t.Page, Total: t.Total, Fields: []string{"id"}, Len: len(t.Items),
		Append: func(dst []byte, i int) []byte { return kind.AppendText(dst, t.Items[i]) },
	}.send(c)
}
