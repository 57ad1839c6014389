package console

import (
	"net/http"
	"strings"
)

// lintView is what a look over the network found, and which assertions do not hold.
type lintView struct {
	Count  int
	Checks []lintCheck // those that found something
	Clean  []string    // what the others look for
	// What assertions say, if the person may read them.
	Asserts bool
	Broken  []brokenView
	Holding int
	Idle    []navLink // those that are about nobody
}

type lintCheck struct {
	Name  string `json:"name"`
	Why   string `json:"why"`
	Count int    `json:"count"`
	Rows  []lintRow
	More  int // findings beyond those that are listed
}

// Label is what its table is called.
func (c lintCheck) Label() string { return "Findings of " + c.Name }

// lintRow is a finding: about which record, what, and the command that mends it.
type lintRow struct{ Kind, Name, Href, What, Command string }

// brokenView is an assertion that does not hold, or would not.
type brokenView struct{ Name, Href, What string }

// lint shows what was not meant or was forgotten.
func (v *visit) lint() {
	var found struct {
		Count  int `json:"count"`
		Checks []struct {
			lintCheck
			Listed []struct {
				Kind    string `json:"kind"`
				ID      string `json:"id"`
				Name    string `json:"name"`
				What    string `json:"what"`
				Command string `json:"command"`
			} `json:"listed"`
		} `json:"checks"`
	}
	if err := v.get(v.ManagementRoot+"/lint", nil, &found); err != nil {
		v.fail(err)
		return
	}
	view := lintView{Count: found.Count}
	for _, c := range found.Checks {
		if c.Count == 0 {
			view.Clean = append(view.Clean, c.Name)
			continue
		}
		one := c.lintCheck
		one.More = c.Count - len(c.Listed)
		for _, f := range c.Listed {
			one.Rows = append(one.Rows, lintRow{strings.ReplaceAll(f.Kind, "-", " "), f.Name, v.recordPage(f.Kind, f.ID), f.What, f.Command})
		}
		view.Checks = append(view.Checks, one)
	}
	v.checked(&view)
	v.show(http.StatusOK, "lint", page{Title: "Lint", Body: view})
}

// checked adds which assertions hold. Who may not read them sees the rest.
func (v *visit) checked(view *lintView) {
	var all struct {
		Assertions []struct {
			breach
			Holds bool `json:"holds"`
			Idle  bool `json:"idle"`
		} `json:"assertions"`
	}
	if v.get(v.ManagementRoot+"/assertions/check", nil, &all) != nil {
		return
	}
	view.Asserts = true
	for _, a := range all.Assertions {
		switch {
		case !a.Holds:
			view.Broken = append(view.Broken, v.brokenOf(a.breach))
		case a.Idle:
			view.Idle = append(view.Idle, navLink{Text: a.Name, Href: v.recordPage("assertion", a.ID)})
		default:
			view.Holding++
		}
	}
}

// breach is an assertion that does not hold, or would not after changes.
type breach struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	What string `json:"what"`
}

func (v *visit) brokenOf(b breach) brokenView {
	return brokenView{b.Name, v.recordPage("assertion", b.ID), b.What}
}

// brokenBy are the assertions that a plan breaks.
func (v *visit) brokenBy(plan changeOut) (list []brokenView) {
	for _, b := range plan.Assertions {
		list = append(list, v.brokenOf(b))
	}
	return list
}
