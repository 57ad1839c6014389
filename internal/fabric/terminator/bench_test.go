package terminator

import (
	"fmt"
	"testing"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/model"
)

// BenchmarkChoose chooses among more and more terminators: what it costs must
// grow with routers alone. Beside it is what a look at all of them costs.
func BenchmarkChoose(b *testing.B) {
	for _, routers := range []int{1, 10, 100} {
		for _, n := range []int{10, 100, 1_000, 10_000, 100_000} {
			if n < routers {
				continue
			}
			f := newField(b)
			var ids []string
			for i := range routers {
				ids = append(ids, f.router(b, int64(10*i), false))
			}
			for done := 0; done < n; done += 1000 {
				f.write(b, func(tx *state.Tx) error {
					for i := done; i < min(done+1000, n); i++ {
						r := terminator(fmt.Sprintf("t%06d", i), ids[i%routers], model.PrecedenceDefault, (i/routers)%200)
						if err := model.Terminators.Create(tx, r); err != nil {
							return err
						}
					}
					return nil
				})
			}
			for _, strategy := range []string{SmartRouting, Random, Weighted} {
				b.Run(fmt.Sprintf("%s/routers=%d/terminators=%d", strategy, routers, n), func(b *testing.B) {
					w, snap := f.want(strategy), f.State.Snapshot()
					for b.Loop() {
						if _, ok := f.Choose(snap, w); !ok {
							b.Fatal("nobody was chosen")
						}
					}
				})
				b.Run(fmt.Sprintf("all/%s/routers=%d/terminators=%d", strategy, routers, n), func(b *testing.B) {
					w, snap := f.want(strategy), f.State.Snapshot()
					for b.Loop() {
						if _, ok := chooseOf(snap, strategy, f.all(w), ""); !ok {
							b.Fatal("nobody was chosen")
						}
					}
				})
			}
			f.State.Close()
		}
	}
}
