package console

import (
	"net/url"
	"strconv"
	"strings"
)

// pastView says that a page shows the network as it was.
type pastView struct {
	Text string
	Now  string // the same page of the present
}

// withAt asks for the network as it was, if a moment is given.
func withAt(query url.Values, at string) url.Values {
	if at != "" {
		query.Set("at", moments(at))
	}
	return query
}

// moments is a moment as the APIs read it: what people type in UTC has no zone.
func moments(at string) string {
	at = strings.TrimSpace(at)
	if t, err := readTime(at); err == nil && len(at) < len("2006-01-02T15:04:05Z") {
		return t.(string)
	}
	return at
}

// isMoment reports whether a text can stand for a moment: a time, or the number of an
// audit entry. Whether so much is known of the past, the APIs say.
func isMoment(at string) bool {
	_, notTime := readTime(at)
	_, notNumber := strconv.ParseUint(at, 10, 63)
	return notTime == nil || notNumber == nil
}

// pagePast is the address of a page as it was, if a moment is given.
func pagePast(href, at string) string {
	if href == "" || at == "" {
		return href
	}
	return href + "?" + url.Values{"at": {at}}.Encode()
}

// pastOf says of which moment a page is; nil for the present.
func (v *visit) pastOf(at string) *pastView {
	if at == "" {
		return nil
	}
	query := v.r.URL.Query()
	query.Del("at")
	query.Del("from")
	view := &pastView{Text: "The network as it was at " + at + ".", Now: (&url.URL{Path: v.r.URL.Path, RawQuery: query.Encode()}).String()}
	if _, err := strconv.ParseInt(at, 10, 64); err == nil {
		view.Text = "The network as it was after audit entry " + at + "."
	}
	return view
}
