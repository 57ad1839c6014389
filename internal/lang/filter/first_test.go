package filter

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFirst holds the rows that are kept against all of them in order, for pages close to
// the beginning and far behind it.
func TestFirst(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		n := rapid.IntRange(0, 6*mostHeaped).Draw(t, "rows")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		var rows []*item
		for i := range n {
			rows = append(rows, &item{ID: fmt.Sprintf("%07d", i), Name: new(fmt.Sprint(random.IntN(50))), Cost: new(int64(random.IntN(500)))})
		}
		byID := rapid.Bool().Draw(t, "by id")
		if !byID {
			random.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		}
		q := mustCompile(tb, rapid.SampledFrom([]string{"", "sort by cost", "sort by cost desc", "sort by name, cost desc", "sort by id desc"}).Draw(t, "order"))
		sorted := slices.SortedFunc(slices.Values(rows), q.Compare)
		page := Page{Offset: rapid.Int64Range(0, int64(n)+10).Draw(t, "offset"), Limit: rapid.Int64Range(1, MaxLimit).Draw(t, "limit")}
		page.Unlimited = rapid.IntRange(0, 9).Draw(t, "unlimited") == 0
		from, to := min(page.Offset, int64(n)), min(page.Offset+page.Limit, int64(n))
		if page.Unlimited {
			to = int64(n)
		}
		got, total := q.Select(Rows[*item]{Seq: slices.Values(rows), ByID: byID}, page)
		if total != int64(n) || !slices.Equal(got, sorted[from:to]) {
			t.Fatalf("%d of %d rows from %d on are not those that come there", len(got), total, page.Offset)
		}
	})
}

// TestHead holds the heads of values against the order of the values.
func TestHead(tb *testing.T) {
	rapid.Check(tb, func(t *rapid.T) {
		whole := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, 1 << 53, 1<<53 + 1, math.MaxInt64}))
		float := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.Inf(-1), math.Copysign(0, -1), 0, 1 << 53, math.Inf(1), math.NaN()}))
		values := rapid.SampledFrom([]*rapid.Generator[Value]{
			rapid.Map(rapid.String(), StringValue),
			rapid.Map(rapid.SampledFrom([]string{"", "\x00", "router-1", "router-1\x00", "router-12", "\xff"}), StringValue),
			rapid.OneOf(rapid.Map(whole, IntValue), rapid.Map(float, FloatValue)),
			rapid.Map(rapid.Bool(), BoolValue),
			rapid.Custom(func(t *rapid.T) Value {
				return TimeValue(time.Unix(rapid.OneOf(rapid.Int64Range(-1<<40, 1<<40), rapid.Int64Range(-2, 2)).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")))
			}),
		}).Draw(t, "type")
		either := rapid.OneOf(values, rapid.Just(Value{}))
		a, b := either.Draw(t, "a"), either.Draw(t, "b")
		if c := cmp.Compare(a.head(), b.head()); c != 0 && c != compareForSort(a, b) {
			t.Fatalf("%s has %x and %s has %x, and they compare as %d", a, a.head(), b, b.head(), compareForSort(a, b))
		}
	})
}
