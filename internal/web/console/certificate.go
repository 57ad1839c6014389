package console

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// certificatesView is what ends when.
type certificatesView struct {
	Own, Others, Routers []endingView
	Soon                 int // how many end soon, or have ended
	More                 int // routers beyond those that are shown
	Unknown              int // routers that do not say what they have
}

// endingView is a certificate and when it ends.
type endingView struct {
	Name, Href, Kind string
	Subject          string
	Until            value
	Days             int
	State            string // ok, soon or ended
}

// endingTable is some of them, with what they are together.
type endingTable struct {
	Label string
	Rows  []endingView
}

// OwnTable, OthersTable and RoutersTable are the same for templates.
func (v certificatesView) OwnTable() endingTable {
	return endingTable{"Certificates of this controller", v.Own}
}
func (v certificatesView) OthersTable() endingTable {
	return endingTable{"Certificates of the authorities of others", v.Others}
}
func (v certificatesView) RoutersTable() endingTable {
	return endingTable{"Certificates of edge routers", v.Routers}
}

// Bounds of what the page reads and shows.
const (
	mostRead    = 5000
	mostEndings = 200
)

// ending says how a certificate is that ends at some time.
func (v *visit) ending(name string, until time.Time) endingView {
	left := until.Sub(v.Now())
	e := endingView{Name: name, Until: reading{}.text(until.UTC().Format(time.RFC3339)), Days: int(left / (24 * time.Hour)), State: "ok"}
	switch {
	case left < 0:
		e.State = "ended"
	case e.Days < soon:
		e.State = "soon"
	}
	return e
}

// certificates shows what ends when: what the controller has, whom it believes, and what
// routers connect with.
func (v *visit) certificates() {
	var now status
	if err := v.get(v.ManagementRoot+"/status", nil, &now); err != nil {
		v.fail(err)
		return
	}
	var view certificatesView
	for _, c := range now.Certificates {
		e := v.ending(titled(c.Name), c.NotAfter)
		e.Subject = c.Subject
		view.Own = append(view.Own, e)
	}
	if err := v.believed(&view); err != nil {
		v.fail(err)
		return
	}
	if err := v.routersEnd(&view); err != nil {
		v.fail(err)
		return
	}
	for _, list := range [][]endingView{view.Own, view.Others, view.Routers} {
		slices.SortStableFunc(list, func(a, b endingView) int { return cmp.Compare(a.Days, b.Days) })
		for _, e := range list {
			if e.State != "ok" {
				view.Soon++
			}
		}
	}
	if n := len(view.Routers); n > mostEndings {
		view.Routers, view.More = view.Routers[:mostEndings], n-mostEndings
	}
	v.show(http.StatusOK, "certificates", page{Title: "Certificates", Body: view, Live: "cas,edge-routers,external-jwt-signers"})
}

// believed adds the authorities of others.
func (v *visit) believed(view *certificatesView) error {
	cas, _, err := v.every(v.ManagementRoot+"/cas", url.Values{"sort": {"name"}, "fields": {"id,name,certPem"}}, mostRead)
	if err != nil {
		return err
	}
	for _, rec := range cas {
		if cert := leafOf(rec.text("certPem")); cert != nil {
			e := v.ending(rec.text("name"), cert.NotAfter)
			e.Kind, e.Href, e.Subject = "CA", link("cas", rec.text("id")), cert.Subject.String()
			view.Others = append(view.Others, e)
		}
	}
	signers, _, err := v.every(v.ManagementRoot+"/external-jwt-signers", url.Values{"sort": {"name"}, "fields": {"id,name,notAfter,commonName"}}, mostRead)
	if err != nil {
		return err
	}
	for _, rec := range signers {
		if until, ok := moment(rec.text("notAfter")); ok && until.Year() > 1 {
			e := v.ending(rec.text("name"), until)
			e.Kind, e.Href, e.Subject = "external signer", link("external-jwt-signers", rec.text("id")), rec.text("commonName")
			view.Others = append(view.Others, e)
		}
	}
	return nil
}

// routersEnd adds what edge routers connect with. Those that only carry traffic do not
// show theirs.
func (v *visit) routersEnd(view *certificatesView) error {
	routers, _, err := v.every(v.ManagementRoot+"/edge-routers", url.Values{"sort": {"name"}, "fields": {"id,name,certPem"}}, mostRead)
	if err != nil {
		return err
	}
	for _, rec := range routers {
		cert := leafOf(rec.text("certPem"))
		if cert == nil {
			view.Unknown++
			continue
		}
		e := v.ending(rec.text("name"), cert.NotAfter)
		e.Href, e.Subject = link("edge-routers", rec.text("id")), cert.Subject.String()
		view.Routers = append(view.Routers, e)
	}
	return nil
}

// leafOf is the first certificate of a PEM; nil if there is none.
func leafOf(text string) *x509.Certificate {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return cert
}

// every reads all records of a list, up to a bound. total is how many there are.
func (v *visit) every(path string, query url.Values, most int) (all []members, total int, err error) {
	const each = 500
	for {
		query.Set("limit", strconv.Itoa(each))
		query.Set("offset", strconv.Itoa(len(all)))
		list, err := v.list(path, query)
		if err != nil {
			return nil, 0, err
		}
		all, total = append(all, list.Data...), list.Meta.Pagination.Total
		if len(list.Data) < each || len(all) >= most {
			return all, total, nil
		}
	}
}
