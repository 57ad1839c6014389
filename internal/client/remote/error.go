package remote

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error is a refusal of the controller.
type Error struct {
	Status  int
	Code    string
	Message string
	Field   string
	Reason  string
	Value   jsontext.Value // that is wrong
	Request string         // its id, to look for in the controller's log
	Wait    string         // how many seconds to wait before another try
}

func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Field != "":
		fmt.Fprintf(&b, "%s %s", e.Field, e.Reason)
	default:
		b.WriteString(cmp.Or(e.Reason, e.Message, http.StatusText(e.Status)))
	}
	switch {
	case e.Status == http.StatusUnauthorized:
		b.WriteString("; run: netkeep login")
	case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests:
		if e.Wait != "" {
			fmt.Fprintf(&b, " (try again in %s s)", e.Wait)
		}
	case e.Status >= 500 && e.Request != "":
		fmt.Fprintf(&b, " (request %s)", e.Request)
	}
	return b.String()
}

// Is lets errors.Is ask for a kind of refusal.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrMissing:
		return e.Status == http.StatusNotFound
	case ErrDenied:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	case ErrConflict:
		return e.Status == http.StatusConflict
	}
	return false
}

// What errors of this package may be.
var (
	ErrMissing     = errors.New("there is no such thing")
	ErrDenied      = errors.New("the controller does not know the session")
	ErrConflict    = errors.New("it is in conflict with what there is")
	ErrUnreachable = errors.New("the controller cannot be reached")
	// ErrOpen is where it is not known whether a request was carried out.
	ErrOpen = errors.New("whether the change was made is not known")
)

// refusal reads an error's answer.
func refusal(address string, resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	e := ReadError(resp.StatusCode, resp.Header, data)
	if e.Code == "" {
		e.Message = fmt.Sprintf("%s answered %s and nothing that a controller would say; is the address right?", address, resp.Status)
	}
	return e
}

// ReadError understands an answer that says no. It has no code if no controller
// said it.
func ReadError(status int, header http.Header, body []byte) *Error {
	e := &Error{Status: status, Wait: header.Get("Retry-After")}
	var said struct {
		Error struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			RequestID string `json:"requestId"`
			Cause     struct {
				Field   string         `json:"field"`
				Reason  string         `json:"reason"`
				Value   jsontext.Value `json:"value"`
				Message string         `json:"message"`
			} `json:"cause"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return e
	}
	e.Code, e.Message, e.Request = said.Error.Code, said.Error.Message, said.Error.RequestID
	e.Value = said.Error.Cause.Value
	e.Field, e.Reason = said.Error.Cause.Field, cmp.Or(said.Error.Cause.Reason, said.Error.Cause.Message)
	return e
}

// unreachable says why a request got no answer, and of one that changes something
// and may have arrived that it may be done.
func unreachable(address string, err error, open bool) error {
	said := Explain(address, err)
	if open {
		return fmt.Errorf("%w; %w: look with netkeep get, or do the same again", said, ErrOpen)
	}
	return said
}

// broken says that an answer ended before its end, or that there was no sense in
// it.
func (c *Client) broken(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*tooLarge](err); ok {
		return e
	}
	_, meaning := errors.AsType[*json.SemanticError](err)
	_, form := errors.AsType[*jsontext.SyntacticError](err)
	if meaning || form && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("what %s answers cannot be understood; is it a controller? (%w)", c.Address(), err)
	}
	return fmt.Errorf("%w: its answer broke off: %w", ErrUnreachable, err)
}

// tooLarge says that an answer has more bytes than it may.
type tooLarge struct {
	address string
	most    int64
}

func (e *tooLarge) Error() string {
	return fmt.Sprintf("%s answers with more than %g MiB, which no controller does; is the address right?", e.address, float64(e.most)/(1<<20))
}

func trustProblem(err error) bool {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	return unverified || record
}

// Explain turns what the network says into a sentence with a next step.
func Explain(address string, err error) error {
	// The address is in the sentence already, without a query that may hold a
	// secret.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	say := func(format string, args ...any) error {
		return &Unreachable{fmt.Sprintf(format, args...)}
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return say("nobody knows the host of %s; is the name right?", address)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return say("%s does not speak TLS; is the port right?", address)
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return &Untrusted{address}
	}
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return say("the certificate of %s is for another name (%v); use a name that it is made out to", address, e)
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return say("the certificate of %s has expired, or this machine's clock is wrong: %v", address, e)
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return say("nothing listens at %s; is the controller running, and is the port right?", address)
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return say("%s does not answer in time", address)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return say("%s closed the connection", address)
	}
	if strings.Contains(err.Error(), "no application protocol") {
		return say("%s speaks TLS, and no HTTP: it may be the port of a router; the controller's own is 1280 unless somebody has chosen another", address)
	}
	return say("%s: %v", address, err)
}

// Unreachable says why somebody gives no answer, whoever it is, and what to do
// about it behind a semicolon.
type Unreachable struct{ Why string }

func (e *Unreachable) Error() string { return ErrUnreachable.Error() + ": " + e.Why }
func (e *Unreachable) Unwrap() error { return ErrUnreachable }

// Untrusted says that a controller is not the one that it was.
type Untrusted struct{ Address string }

func (e *Untrusted) Error() string {
	return fmt.Sprintf("%v: the certificate of %s is of a CA that is not trusted here; if the controller has new keys, run: netkeep login %s", ErrUnreachable, e.Address, e.Address)
}

func (e *Untrusted) Unwrap() error { return ErrUnreachable }

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
