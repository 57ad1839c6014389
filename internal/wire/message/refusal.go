package message

import (
	"encoding/json"
	"fmt"
	"strings"

	"netkeep.internal/internal/wire"
)

// Refusal is a no, from whoever said it first to whoever asked: it is the same
// error in a controller, in a router and in a client, and frames carry it from
// one to the next. Only its code says what it is. Text is for people.
type Refusal struct {
	Code  ErrorCode // 0 if there is none, as with routers of others before 2.1
	Retry RetryHint
	Text  string
	// Route is why the host was not reached, if it is the host: then Hosted is
	// true.
	Route  RouteError
	Hosted bool
	// Circuit is the one that failed, if somebody names it.
	Circuit string
}

// Refuse says no.
func Refuse(code ErrorCode, text string) *Refusal {
	return &Refusal{Code: code, Retry: code.Retry(), Text: text}
}

// Busy says not now.
func Busy(text string) *Refusal {
	return &Refusal{Code: CodeInternal, Retry: RetryTooBusy, Text: text}
}

// Unreached says no where a host, or a router on the way to it, did.
func Unreached(route RouteError, text string) *Refusal {
	r := &Refusal{Code: CodeInternal, Retry: route.Retry(), Text: text, Route: route, Hosted: true}
	if route == RouteInvalidTerminator {
		r.Code = CodeInvalidTerminator
	}
	return r
}

func (r *Refusal) Error() string {
	if r.Text == "" {
		return r.Code.Sentence()
	}
	return r.Text
}

// Name is what programs and people call the reason; empty if none is known.
func (r *Refusal) Name() string {
	switch {
	case r.Code == 0:
		return ""
	case r.Hosted:
		return r.Route.String()
	case r.Code == CodeInternal && r.Retry == RetryTooBusy:
		return "BUSY"
	}
	return r.Code.String()
}

// Named is the text with the name behind it, which is what to look for in the
// documentation.
func (r *Refusal) Named() string {
	if name := r.Name(); name != "" {
		return fmt.Sprintf("%s (%s)", r.Error(), name)
	}
	return r.Error()
}

// structured is a refusal as clients of others read it, in
// HeaderStructuredError. There is no cause: some of them cannot read one.
type structured struct {
	Message string    `json:"message"`
	Code    ErrorCode `json:"code"`
	Retry   RetryHint `json:"retryHint"`
}

// code puts into headers what all frames with a refusal have.
func (r *Refusal) code(h wire.Headers) {
	if r.Code == 0 {
		return
	}
	h.SetUint32(HeaderErrorCode, uint32(r.Code))
	if r.Hosted {
		h[HeaderRouteErrorCode] = []byte{byte(r.Route)}
	}
}

// Answer is what a controller answers a router with that is to hear more than no.
func (r *Refusal) Answer() *wire.Frame {
	h := wire.Headers{}
	r.code(h)
	h.SetUint32(HeaderRetryHint, uint32(r.Retry))
	if r.Circuit != "" {
		h.SetText(HeaderFailedCircuit, r.Circuit)
	}
	return &wire.Frame{Type: TypeError, Headers: h, Body: []byte(r.Code.Say(r.Error()))}
}

// Final is what a controller answers a router with that need not ask again.
func (r *Refusal) Final() *wire.Frame {
	h := wire.Headers{}
	h.SetBool(HeaderSuccess, false)
	r.code(h)
	return &wire.Frame{Type: TypeResult, Headers: h, Body: []byte(r.Error())}
}

// Closed is what a router tells a client of a connection or a listener that is
// not, or not any more. Whoever has asked for it gets the words that it may look
// for.
func (r *Refusal) Closed(asked bool) *wire.Frame {
	h, text := wire.Headers{}, r.Error()
	if asked {
		text = r.Code.Say(text)
	}
	if r.Code != 0 {
		r.code(h)
		said, _ := json.Marshal(structured{text, r.Code, r.Retry}) // a text and numbers
		h[HeaderStructuredError] = said
	}
	if r.Circuit != "" {
		h.SetText(HeaderClientCircuit, r.Circuit)
	}
	return &wire.Frame{Type: TypeClosed, Headers: h, Body: []byte(text)}
}

// RefusalIn is the refusal in a frame that is one, whoever has sent it.
func RefusalIn(f *wire.Frame) *Refusal {
	code, coded := f.Headers.Uint32(HeaderErrorCode)
	r := &Refusal{Code: ErrorCode(code), Retry: ErrorCode(code).Retry(), Text: strings.TrimSpace(string(f.Body))}
	switch f.Type {
	case TypeResult:
		r.Retry = RetryNever
		if why, _ := f.Headers.Uint32(HeaderResultCode); why == ResultRateLimited {
			r.Code, r.Retry = CodeInternal, RetryTooBusy
		}
	case TypeError:
		r.Circuit = f.Headers.Text(HeaderFailedCircuit)
		if hint, said := f.Headers.Uint32(HeaderRetryHint); said {
			r.Retry = RetryHint(hint)
		}
	case TypeClosed:
		r.Circuit = f.Headers.Text(HeaderClientCircuit)
		var said structured
		if json.Unmarshal(f.Headers[HeaderStructuredError], &said) == nil && (!coded || said.Code == r.Code) {
			r.Code, r.Retry = said.Code, said.Retry
		}
	}
	if r.Code.Say("") != "" {
		r.Text = "" // it is for programs
	}
	if route, ok := f.Headers.Byte(HeaderRouteErrorCode); ok {
		r.Route, r.Hosted = RouteError(route), true
	}
	return r
}
