package console

import (
	"net/url"
	"sync"
)

// mostAtOnce is how many requests for one page are under way at a time: more would keep
// the places of others for nothing.
const mostAtOnce = 4

// together does what a page needs side by side, and returns when all of it is done.
func together(tasks ...func()) {
	var wg sync.WaitGroup
	places := make(chan struct{}, mostAtOnce)
	var once sync.Once
	var trouble any
	for _, task := range tasks {
		places <- struct{}{}
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil { // the request fails, and not the controller
					once.Do(func() { trouble = p })
				}
				<-places
			}()
			task()
		})
	}
	wg.Wait()
	if trouble != nil {
		panic(trouble)
	}
}

// wanted is a list that a page needs.
type wanted struct {
	path  string
	query url.Values
}

// lists reads several lists side by side. One that cannot be had is nil, and does not
// keep the others away.
func (v *visit) lists(all []wanted) []*listing {
	pages := make([]*listing, len(all))
	tasks := make([]func(), len(all))
	for i, w := range all {
		tasks[i] = func() {
			if page, err := v.list(w.path, w.query); err == nil {
				pages[i] = page
			}
		}
	}
	together(tasks...)
	return pages
}
