package console

import (
	"net/http"
	"net/url"
	"strings"
	"time"
)

// alertsView is who is sent alerts.
type alertsView struct {
	Rows          []receiverView
	Done, Problem string
}

type receiverView struct {
	Name, Host, Events, Error string
	Delivered, Dropped        int64
	Last                      value
	Test                      string
}

// receiver is one, as the API tells it.
type receiver struct {
	Name        string     `json:"name"`
	Host        string     `json:"host"`
	Events      []string   `json:"events"`
	Delivered   int64      `json:"delivered"`
	DeliveredAt *time.Time `json:"deliveredAt"`
	Dropped     int64      `json:"dropped"`
	Error       string     `json:"error"`
}

// alerts shows who is sent alerts and how it stands with them.
func (v *visit) alerts() { v.alertsPage(http.StatusOK, alertsView{}) }

func (v *visit) alertsPage(status int, view alertsView) {
	var all []receiver
	if err := v.get(v.ManagementRoot+"/alerts", nil, &all); err != nil {
		v.fail(err)
		return
	}
	for _, r := range all {
		row := receiverView{Name: r.Name, Host: r.Host, Events: strings.Join(r.Events, ", "), Error: r.Error, Delivered: r.Delivered, Dropped: r.Dropped, Test: link("alerts", r.Name, "test")}
		if r.DeliveredAt != nil {
			row.Last = reading{}.text(r.DeliveredAt.UTC().Format(time.RFC3339))
		}
		view.Rows = append(view.Rows, row)
	}
	v.show(status, "alerts", page{Title: "Alerts", Body: view})
}

// testAlert sends a test to a receiver and says what came of it.
func (v *visit) testAlert(name string) {
	if v.r.Method != http.MethodPost {
		http.Redirect(v.w, v.r, link("alerts"), http.StatusSeeOther)
		return
	}
	var view alertsView
	var tried struct {
		Taken bool   `json:"taken"`
		Error string `json:"error"`
	}
	status, done := v.sent(&view.Problem, func() error {
		a, err := v.ask(request{method: http.MethodPost, path: v.ManagementRoot + "/alerts/" + url.PathEscape(name) + "/test"})
		if err != nil {
			return err
		}
		return a.data(&tried)
	})
	switch {
	case status == 0:
		return
	case done && tried.Taken:
		view.Done = name + " took a test alert."
	case done:
		view.Problem = name + " did not take a test alert: " + tried.Error
	}
	v.alertsPage(status, view)
}
