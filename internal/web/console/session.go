package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"netkeep.internal/internal/ops/limit"
)

// cookieName is what a browser is known by. The prefix has browsers refuse the cookie
// from anybody but this host, and over anything but TLS.
const cookieName = "__Host-netkeep"

// visit is one request of a browser.
type visit struct {
	*Console
	w http.ResponseWriter
	r *http.Request

	token  string // of the API session; empty for a stranger
	person string // what the session's identity is called
	form   url.Values
	anew   bool // the token of a signer that the browser has is not to be used any more
}

// guard has browsers take pages for what they are, and nobody else use them.
func guard(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// foreign reports whether a page of another site may have made the browser send a
// form. Browsers say where a request comes from, in one of two ways: without either
// nobody knows.
func foreign(r *http.Request) bool {
	if from := r.Header.Get("Sec-Fetch-Site"); from != "" {
		return from != "same-origin"
	}
	return r.Header.Get("Origin") != "https://"+r.Host
}

// formToken is what forms of a session carry, which no other site can know. It follows
// from the session, so that every controller makes the same.
func formToken(session string) string {
	sum := sha256.Sum256([]byte("netkeep console form\x00" + session))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// ours reports whether the form that was sent is one of this session.
func (v *visit) ours() bool {
	return subtle.ConstantTimeCompare([]byte(v.form.Get("token")), []byte(formToken(v.token))) == 1
}

// setCookie has the browser keep the session until it is closed, or forget it.
func (v *visit) setCookie(token string) {
	cookie := &http.Cookie{Name: cookieName, Value: token, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if token == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(v.w, cookie)
}

// current is what a person sees of its own session.
type current struct {
	Token         string `json:"token"`
	Authenticator string `json:"authenticatorId"`
	Identity      struct {
		Name string `json:"name"`
	} `json:"identity"`
	Queries []authQuery `json:"authQueries"`
}

// recognise finds out whose cookie the browser has; nil if it has none that is good.
func (v *visit) recognise() (*current, error) {
	cookie, err := v.r.Cookie(cookieName)
	if err != nil || cookie.Value == "" {
		return nil, nil
	}
	v.token = cookie.Value
	var now current
	err = v.get(v.ManagementRoot+"/current-api-session", nil, &now)
	var f *failure
	switch {
	case errors.As(err, &f) && f.status == http.StatusUnauthorized:
		v.token = ""
		return nil, nil
	case err != nil:
		return nil, err
	}
	v.person = now.Identity.Name
	return &now, nil
}

// known reports whether the visitor has a whole session. Who has none is led to get
// one, and back.
func (v *visit) known() bool {
	now, err := v.recognise()
	switch {
	case err != nil:
		v.fail(err)
	case now == nil && v.linked():
		v.show(http.StatusOK, "again", page{Title: "One moment", Body: v.r.URL.RequestURI()})
	case now == nil && v.r.Method == http.MethodPost:
		v.loginAgain()
	case now == nil:
		v.loginPage(http.StatusUnauthorized, entry{Next: v.r.URL.RequestURI()})
	case len(now.Queries) > 0:
		v.codePage(http.StatusUnauthorized, entry{Next: v.r.URL.RequestURI()})
	default:
		return true
	}
	return false
}

// linked reports whether the browser was led here by another site, and so keeps the
// cookie back. A page of ours that leads on at once gets it.
func (v *visit) linked() bool {
	_, err := v.r.Cookie(cookieName)
	return err != nil && v.r.Method == http.MethodGet && v.r.Header.Get("Sec-Fetch-Site") == "cross-site" && v.r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

// The sizes of forms. Those of strangers are what a person types to log in, and what
// it had typed before its session ended.
const (
	strangerForm = 256 << 10
	maxInputs    = 5000
)

// receive reads the form that was sent, and reports whether it could.
func (v *visit) receive(most int64) bool {
	kind, _, _ := strings.Cut(v.r.Header.Get("Content-Type"), ";")
	if kind != "application/x-www-form-urlencoded" {
		v.refuse(http.StatusUnsupportedMediaType, "Not like this", "Forms are sent as application/x-www-form-urlencoded.")
		return false
	}
	from, _ := netip.ParseAddrPort(v.r.RemoteAddr)
	source := limit.Source{
		Reader: http.MaxBytesReader(v.w, v.r.Body, most), Size: v.r.ContentLength,
		Until: http.NewResponseController(v.w).SetReadDeadline,
	}
	pace := v.Pace
	if v.token == "" {
		pace.Least = 0 // a stranger has no time to send slowly
	}
	data, release, err := v.Bodies.Read(limit.At(from.Addr()), source, most, pace)
	if err != nil {
		v.unread(err)
		return false
	}
	defer release()
	if strings.Count(string(data), "&") > maxInputs {
		v.refuse(http.StatusRequestEntityTooLarge, "Too much at once", "The form has more inputs than a page can have.")
		return false
	}
	if v.form, err = url.ParseQuery(string(data)); err != nil {
		v.refuse(http.StatusBadRequest, "This cannot be read", "The form that was sent is not one.")
		return false
	}
	return true
}

// unread says why a form could not be taken.
func (v *visit) unread(err error) {
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large && v.token == "" && strings.TrimPrefix(v.r.URL.Path, Root) != "login":
		v.refuse(http.StatusRequestEntityTooLarge, "Your session has ended", "The form is too large to be kept while you log in. Log in in another tab, come back here and save again: nothing was changed.")
	case large:
		v.refuse(http.StatusRequestEntityTooLarge, "Too much at once", "The form is larger than the controller takes. Nothing was changed.")
	case errors.Is(err, limit.ErrFull), errors.Is(err, limit.ErrShare):
		v.refuse(http.StatusServiceUnavailable, "The controller is busy", "Nothing was changed. Go back and try again.")
	default:
		v.refuse(http.StatusRequestTimeout, "The form did not arrive", "Nothing was changed. Go back and try again.")
	}
}

// within returns where to go on after a login: a page of the console, whatever was
// asked for.
func within(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(next, "//") {
		return Root
	}
	clean := path.Clean(u.Path)
	if !strings.HasPrefix(clean, Root) {
		return Root
	}
	for _, own := range []string{"login", "logout", "code", "provider", "events", "assets"} {
		if first, _, _ := strings.Cut(strings.TrimPrefix(clean, Root), "/"); first == own {
			return Root
		}
	}
	return (&url.URL{Path: clean, RawQuery: u.RawQuery}).String()
}

// link is the path of a page.
func link(parts ...string) string {
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return Root + strings.Join(parts, "/")
}
