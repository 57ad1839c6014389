package filter

import (
	"slices"

	"netkeep.internal/internal/lang/fault"
)

// maxOrders is how many fields of a sort clause are used. More are checked
// and then ignored.
const maxOrders = 5

// Order is one field by which rows are sorted. Rows without a value come first
// when ascending.
type Order[R any] struct {
	Symbol *Symbol[R]
	Desc   bool
}

// Sort returns the fields that the query sorts by. Rows that are equal in all
// of them are in ascending order of id, as are all rows if there is none.
func (q *Query[R]) Sort() []Order[R] { return slices.Clone(q.orders) }

// SortedBy returns the query with the order of a sort query parameter, a list
// such as "name desc, id". A query with a sort clause of its own, or an empty
// list, leaves it as it is. The error is a *fault.Error with CodeSort.
func (q *Query[R]) SortedBy(list string) (*Query[R], error) {
	if len(q.orders) > 0 {
		return q, nil
	}
	c := compiler[R]{source: source{list, fault.CodeSort}, schema: q.schema}
	fields, err := parseSort(c.source)
	if err != nil {
		return nil, err
	}
	orders, err := c.orders(fields)
	if err != nil {
		return nil, err
	}
	sorted := *q
	sorted.orders = orders
	return &sorted, nil
}

func (c compiler[R]) orders(fields []sortField) ([]Order[R], error) {
	var orders []Order[R]
	for _, f := range fields {
		symbol, _, err := c.schema.resolve(c.source, f.field)
		switch {
		case err != nil:
			return nil, err
		case symbol.Set:
			return nil, c.errorAt(f.field.at, "%s is a set: rows cannot be sorted by it", excerpt(f.field.text))
		case symbol.Type == Map:
			return nil, c.errorAt(f.field.at, "%s is an element of a map: rows cannot be sorted by it", excerpt(f.field.text))
		}
		if len(orders) < maxOrders {
			orders = append(orders, Order[R]{Symbol: symbol, Desc: f.desc})
		}
	}
	return orders, nil
}

// Compare orders two rows as the query asks: it returns a negative number if a
// comes first, a positive one if b does, and zero only if their ids are equal.
func (q *Query[R]) Compare(a, b R) int { return q.compareFrom(0, a, b) }

// compareFrom is Compare for rows that are equal in the fields before one.
func (q *Query[R]) compareFrom(field int, a, b R) int {
	for _, o := range q.orders[field:] {
		c := compareForSort(o.value(a), o.value(b))
		if c != 0 {
			if o.Desc {
				return -c
			}
			return c
		}
	}
	id := q.schema.symbols[idName].One
	return compareForSort(id(a), id(b))
}

// value is what the row is sorted by.
func (o Order[R]) value(row R) Value {
	if o.Symbol.Fine != nil {
		return o.Symbol.Fine(row)
	}
	return o.Symbol.One(row)
}
