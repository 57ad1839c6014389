package screen

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Progress is a line that says how far something long has come. It is for
// people alone: in a pipe, and in its first moments, it says nothing.
type Progress struct {
	screen *Screen
	what   string
	total  int64
	now    func() time.Time

	mu    sync.Mutex
	done  int64
	began time.Time
	drawn time.Time
	shown bool
}

const (
	patience = 300 * time.Millisecond // before something counts as long
	pace     = 100 * time.Millisecond // between two pictures
	barWidth = 24
)

// Progress begins one. total is 0 where nobody knows it.
func (s *Screen) Progress(what string, total int64, now func() time.Time) *Progress {
	return &Progress{screen: s, what: what, total: total, now: now, began: now()}
}

// Add says that so much more is done.
func (p *Progress) Add(n int64) { p.move(func() { p.done += n }) }

// Set says how much is done, and of how much.
func (p *Progress) Set(done, total int64) { p.move(func() { p.done, p.total = done, total }) }

func (p *Progress) move(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	now := p.now()
	if !p.screen.Tells || now.Sub(p.began) < patience || now.Sub(p.drawn) < pace {
		return
	}
	p.drawn, p.shown = now, true
	fmt.Fprintf(p.screen.Err, "\r\x1b[K%s", p.line())
}

func (p *Progress) line() string {
	if p.total <= 0 {
		return fmt.Sprintf("%s %d", p.what, p.done)
	}
	full := int(min(barWidth, p.done*barWidth/p.total))
	return fmt.Sprintf("%s [%s%s] %d of %d", p.what, strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), p.done, p.total)
}

// End takes the line away.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.screen.Err, "\r\x1b[K")
		p.shown = false
	}
}

// Working shows that something is under way of which nobody knows how far it
// has come, and for how long, until it is ended.
func (s *Screen) Working(what string, now func() time.Time) (end func()) {
	if !s.Tells {
		return func() {}
	}
	began := now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fmt.Fprintf(s.Err, "\r\x1b[K%s, %d s so far", what, int(now().Sub(began).Seconds()))
			case <-stop:
				fmt.Fprint(s.Err, "\r\x1b[K")
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
