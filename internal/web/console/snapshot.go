package console

import (
	"net/http"
	"net/url"
	"time"
)

// snapshotsView is the copies of the store.
type snapshotsView struct {
	Rows    []snapshotView
	Done    string
	Problem string
	taken   string // the name of one that was taken just now, as the address has it
}

type snapshotView struct {
	Name     string
	Taken    value
	Ago      string
	Size     string
	Revision int64
	Why      string
	Verify   string
}

// snapshots shows the copies that there are, and takes one.
func (v *visit) snapshots() {
	var view snapshotsView
	status := http.StatusOK
	switch {
	case v.r.Method == http.MethodPost:
		var made struct {
			File string `json:"file"`
		}
		var done bool
		status, done = v.sent(&view.Problem, func() error {
			a, err := v.ask(request{method: http.MethodPost, path: v.ManagementRoot + "/database/snapshot"})
			if err != nil {
				return err
			}
			return a.data(&made)
		})
		if done {
			http.Redirect(v.w, v.r, link("snapshots")+"?"+url.Values{"taken": {made.File}}.Encode(), http.StatusSeeOther)
			return
		}
		if status == 0 {
			return
		}
	default:
		view.taken = v.r.URL.Query().Get("taken")
	}
	v.snapshotsPage(status, view)
}

func (v *visit) snapshotsPage(status int, view snapshotsView) {
	a, err := v.ask(request{method: http.MethodGet, path: v.ManagementRoot + "/database/snapshots"})
	if err != nil {
		v.fail(err)
		return
	}
	var all []struct {
		Name      string    `json:"name"`
		Size      int64     `json:"size"`
		Time      time.Time `json:"time"`
		Revision  int64     `json:"revision"`
		Scheduled bool      `json:"scheduled"`
	}
	if err := a.data(&all); err != nil {
		v.fail(err)
		return
	}
	for _, s := range all {
		row := snapshotView{
			Name: s.Name, Taken: reading{}.text(s.Time.UTC().Format(time.RFC3339)), Ago: v.ago(s.Time), Size: size(s.Size), Revision: s.Revision,
			Why: "asked for", Verify: link("snapshots", s.Name, "verify"),
		}
		if s.Scheduled {
			row.Why = "by itself"
		}
		if s.Name == view.taken { // anybody could make up an address
			view.Done = "A snapshot was taken: " + s.Name + "."
		}
		view.Rows = append(view.Rows, row)
	}
	v.show(status, "snapshots", page{Title: "Snapshots", Body: view})
}

// verifySnapshot reads a copy as a restore would.
func (v *visit) verifySnapshot(name string) {
	if v.r.Method != http.MethodPost {
		http.Redirect(v.w, v.r, link("snapshots"), http.StatusSeeOther)
		return
	}
	var view snapshotsView
	var said struct {
		Intact  bool   `json:"intact"`
		Problem string `json:"problem"`
	}
	status, done := v.sent(&view.Problem, func() error {
		a, err := v.ask(request{method: http.MethodPost, path: v.ManagementRoot + "/database/snapshots/" + url.PathEscape(name) + "/verify"})
		if err != nil {
			return err
		}
		return a.data(&said)
	})
	switch {
	case status == 0:
	case done && said.Intact:
		view.Done = name + " was read from begin to end, and is intact."
		v.snapshotsPage(http.StatusOK, view)
	case done:
		view.Problem = sentence(name + " is damaged: " + said.Problem)
		v.snapshotsPage(http.StatusOK, view)
	default:
		v.snapshotsPage(status, view)
	}
}
