package filter

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func benchmarkRows(n int) []*item {
	rows := make([]*item, n)
	for i := range rows {
		rows[i] = &item{
			ID:    fmt.Sprintf("id%07d", (i*7919)%n),
			Name:  new(fmt.Sprintf("Edge-Router-%06d.frankfurt", i)),
			Cost:  new(int64(i % 1000)),
			Roles: []string{"blue", "green", "r" + fmt.Sprint(i%100)},
			Tags:  map[string]any{"site": "fra"},
		}
	}
	return rows
}

// BenchmarkMatch reports the time per row.
func BenchmarkMatch(b *testing.B) {
	rows := benchmarkRows(1024)
	for _, text := range []string{
		`name = "Edge-Router-000500.frankfurt"`,
		`name contains "kfurt"`,
		`name icontains "KFURT"`,
		`name != "x"`,
		`name in ["a","b","c"]`,
		`cost < 500`,
		`cost between 100 and 200`,
		`tags.site = "fra"`,
		`anyOf(roles) = "r7"`,
		`count(roles) > 2`,
		`name contains "kfurt" and cost < 500 and cost > 100`,
	} {
		b.Run(text, func(b *testing.B) {
			q := mustCompile(b, text)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				q.Match(rows[i%len(rows)])
				i++
			}
		})
	}
}

// BenchmarkParse reads the longest chains that are allowed.
func BenchmarkParse(b *testing.B) {
	for name, text := range map[string]string{
		"500 and":   repeat(`name != "router"`, " and ", MaxTerms),
		"500 mixed": repeat(`cost = 1 or name != "router"`, " and ", MaxTerms/2),
		"1000 ids":  `id in [` + repeat(`"a1b2c3d4e5f"`, ",", MaxItems) + "]",
		"short":     `id = "x" or name = "x"`,
		"refused":   strings.Repeat("(", MaxLength),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				_, _ = Parse(text)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for name, text := range map[string]string{
		"500 and": repeat(`name != "router"`, " and ", MaxTerms),
		"short":   `id = "x" or name = "x"`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Compile(itemSchema, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSelect takes a page of 100,000 rows.
func BenchmarkSelect(b *testing.B) {
	rows := Rows[*item]{Seq: slices.Values(benchmarkRows(100_000))}
	for _, text := range []string{
		`limit 10`, `name contains "kfurt" limit 10`, `sort by name desc limit 10`, `sort by cost skip 50000 limit 500`, `limit none`,
	} {
		b.Run(text, func(b *testing.B) {
			q := mustCompile(b, text)
			page := q.Page(nil, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, total := q.Select(rows, page); total == 0 {
					b.Fatal("nothing selected")
				}
			}
		})
	}
}
