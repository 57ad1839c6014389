package cli

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// rest gives memory back to the machine when there was much to do and little is left: what
// was made for it would stay with the process until as much is made again.
type rest struct {
	before usage
	freed  bool   // at the last look
	least  uint64 // held after memory was last given back: it takes no less
}

// usage is what the process has of the machine's memory for its own.
type usage struct {
	made  uint64 // since it began, all together
	held  uint64 // for what is alive, for garbage and for what comes
	alive uint64 // when that was last looked for
}

const (
	// restEvery is how often it is looked whether there is little to do.
	restEvery = 5 * time.Second
	// restMost is what is made meanwhile if that is so.
	restMost = 64 << 20
	// restWorth is what there must be to give back at least: all that is alive is gone
	// through for it, which takes a second for a gigabyte.
	restWorth = 64 << 20
)

// due reports whether memory is to be given back now.
func (r *rest) due(now usage) bool {
	if r.freed {
		r.least, r.freed = now.held, false
	}
	busy := now.made-r.before.made > restMost
	r.before = now
	needed := max(now.alive+now.alive/4, r.least)
	r.freed = !busy && now.held > needed+restWorth
	return r.freed
}

// run looks until ctx ends, and calls also when it gives memory back.
func (r *rest) run(ctx context.Context, also func()) {
	look := time.NewTicker(restEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			if r.due(used()) {
				also()
				debug.FreeOSMemory()
			}
		}
	}
}

func used() usage {
	all := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(all)
	is := func(i int) uint64 { return all[i].Value.Uint64() }
	return usage{made: is(0), alive: is(1), held: is(2) + is(3) + is(4)}
}
