package filter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

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
		random.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		q := mustCompile(tb, rapid.SampledFrom([]string{"", "sort by cost", "sort by cost desc", "sort by name, cost desc", "sort by id desc"}).Draw(t, "order"))
		sorted := slices.SortedFunc(slices.Values(rows), q.Compare)
		page := Page{Offset: rapid.Int64Range(0, int64(n)+10).Draw(t, "offset"), Limit: rapid.Int64Range(1, MaxLimit).Draw(t, "limit")}
		page.Unlimited = rapid.IntRange(0, 9).Draw(t, "unlimited") == 0
		from, to := min(page.Offset, int64(n)), min(page.Offset+page.Limit, int64(n))
		if page.Unlimited {
			to = int64(n)
		}
		got, total := q.Select(Rows[*item]{Seq: slices.Values(rows)}, page)
		if total != int64(n) || !slices.Equal(got, sorted[from:to]) {
			t.Fatalf("%d of %d rows from %d on are not those that come there", len(got), total, page.Offset)
		}
	})
}
