package rest

import (
	"slices"
	"strconv"

	"netkeep.internal/internal/lang/filter"
	"netkeep.internal/internal/lang/kind"
)

// The parameters of lists.
var (
	limitParam  = NumberParam("limit", "How many entries to answer with: 10 if not given, 500 at most, and all of them for -1.")
	offsetParam = NumberParam("offset", "How many entries to leave out at the beginning; none if not given.")
	filterParam = TextParam("filter", "Which entries, and in which order: `name contains \"x\" sort by name limit 5`; all of them if not given.")
	sortParam   = TextParam("sort", "The order, unless the filter says: names of fields with commas between them, each with desc after it to turn it around; by id if not given.")

	fieldsParam = FieldsParam("fields", "Names of the members that entries are to have, with commas between them; entries then lack the others, so that a long list is quick. All of them if not given.")

	listParams   = []Parameter{limitParam, offsetParam, filterParam, sortParam}
	recordParams = append(slices.Clone(listParams), fieldsParam)
)

// Query compiles the filter, sort and paging parameters of a list request.
func Query[R any](c *Call, schema *filter.Schema[R]) (*filter.Query[R], filter.Page, error) {
	q, err := filter.Compile(schema, filterParam.Of(c))
	if err != nil {
		return nil, filter.Page{}, err
	}
	if q, err = q.SortedBy(sortParam.Of(c)); err != nil {
		return nil, filter.Page{}, err
	}
	return q, q.Page(limitParam.Of(c), offsetParam.Of(c)), nil
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

func (List) describe(o *operation) { o.list = true }

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
	o.list = true
	o.data = kind.ListOf(text)
	o.Params = listParams
}

func (t Texts) send(c *Call) error {
	return List{
		Page: t.Page, Total: t.Total, Fields: []string{"id"}, Len: len(t.Items),
		Append: func(dst []byte, i int) []byte { return kind.AppendText(dst, t.Items[i]) },
	}.send(c)
}
