package console

import (
	"errors"
	"net/http"
)

// sureView is a page that asks whether something is to be done.
type sureView struct {
	Head, About  string
	Up           navLink
	Facts        []fieldView
	Action       string
	Button, Keep string
	Danger       bool
	Asks         string // what a text is for that may be given along, as answer
	Problem      string
	Blocked      bool // whether it cannot be done
}

// makeSure asks whether something is to be done, does it when that was said, and leads
// on from there.
func (v *visit) makeSure(view sureView, do func() error, then string) {
	view.Action = v.r.URL.Path
	status := http.StatusOK
	if v.r.Method == http.MethodPost && !view.Blocked {
		var done bool
		if status, done = v.sent(&view.Problem, do); done {
			http.Redirect(v.w, v.r, then, http.StatusSeeOther)
			return
		}
	}
	if status != 0 {
		v.show(status, "sure", page{Title: view.Head, Body: view})
	}
}

// sent does what a form asks for, if it is one of this session. done is whether it was;
// if not, problem says why, except that a status of 0 is that all was said already.
func (v *visit) sent(problem *string, do func() error) (status int, done bool) {
	if !v.receive(v.MaxBody) {
		return 0, false
	}
	if !v.ours() {
		*problem = "The page was of another session. Nothing was done yet."
		return http.StatusForbidden, false
	}
	err := do()
	var f *failure
	switch {
	case err == nil:
		return http.StatusOK, true
	case errors.As(err, &f) && f.status != http.StatusUnauthorized && f.status != http.StatusNotFound:
		*problem = f.says()
		return f.status, false
	}
	v.fail(err)
	return 0, false
}
