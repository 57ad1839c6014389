package message

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"netkeep.internal/internal/wire"
)

// TestCodes holds the codes to the numbers that all who speak to routers know
// them by, and to names of their own.
func TestCodes(t *testing.T) {
	names := map[string]bool{}
	for number, want := range []string{
		1: "INTERNAL", 2: "INVALID_API_SESSION", 3: "INVALID_SESSION", 4: "WRONG_SESSION_TYPE", 5: "ROUTER_NOT_ALLOWED",
		6: "INVALID_SERVICE", 7: "TUNNELING_NOT_ENABLED", 8: "INVALID_TERMINATOR", 9: "INVALID_PRECEDENCE", 10: "INVALID_COST",
		11: "ENCRYPTION_MISSING", 12: "INVALID_API_SESSION_TYPE", 13: "INVALID_INSTANCE", 14: "ACCESS_DENIED", 15: "POSTURE_FAILED",
	} {
		code := ErrorCode(number)
		if number == 0 {
			continue
		}
		if code.String() != want || code.Sentence() == "" || names[want] {
			t.Errorf("code %d is %s (%q), want %s alone", number, code, code.Sentence(), want)
		}
		names[want] = true
	}
	if len(names) != len(codes)-1 {
		t.Errorf("there are %d codes, and %d are known here", len(codes)-1, len(names))
	}
	for route := range routes {
		if name := RouteError(route).String(); name == "" || names[name] {
			t.Errorf("reason %d is called %q", route, name)
		} else {
			names[name] = true
		}
	}
	if got := ErrorCode(99).String() + " " + RouteError(99).String(); got != "CODE_99 HOST_FAILED" {
		t.Errorf("what is not known is called %s", got)
	}
}

// sent is a frame as it arrives.
func sent(t testing.TB, f *wire.Frame) *wire.Frame {
	t.Helper()
	got, err := wire.Read(bytes.NewReader(f.Append(nil)), wire.Bounds{Headers: 1 << 20, Body: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestRefusalTravels sends every refusal from a controller to a router and on to
// a client: each hears the same.
func TestRefusalTravels(t *testing.T) {
	all := []*Refusal{Busy("later"), Refuse(99, "of a later release"), {Text: "of an older release"}, Refuse(CodeInternal, "")}
	for code := range codes[1:] {
		all = append(all, Refuse(ErrorCode(code+1), "some words"), &Refusal{Code: ErrorCode(code + 1), Retry: RetryNever, Text: "no", Circuit: "c"})
	}
	for route := range routes {
		all = append(all, Unreached(RouteError(route), "some words"))
	}
	for _, said := range all {
		heard := RefusalIn(sent(t, said.Answer()))
		shown := RefusalIn(sent(t, heard.Closed(true)))
		for who, got := range map[string]*Refusal{"a router": heard, "a client": shown} {
			if got.Code != said.Code || got.Retry != said.Retry || got.Name() != said.Name() || got.Circuit != said.Circuit || got.Hosted != said.Hosted {
				t.Errorf("%s hears %+v, and %+v was said", who, got, said)
			}
			if said.Code != CodeInvalidSession && got.Error() != said.Error() {
				t.Errorf("%s hears %q, and %q was said", who, got, said)
			}
		}
		final := RefusalIn(sent(t, said.Final()))
		if final.Code != said.Code || final.Retry != RetryNever {
			t.Errorf("what is final is heard as %+v, and %+v was said", final, said)
		}
	}
}

// TestRefusalFrames has the frames as clients and routers of others know them:
// which header has what, and the words that some of them look for.
func TestRefusalFrames(t *testing.T) {
	answer := sent(t, Refuse(CodeInvalidSession, "there is no session with this token").Answer())
	if code, _ := answer.Headers.Uint32(1014); answer.Type != 20002 || code != 3 || string(answer.Body) != "Invalid Session" || !bytes.Equal(answer.Headers[18], []byte{2, 0, 0, 0}) {
		t.Errorf("a router is answered %d %q %q", answer.Type, answer.Headers, answer.Body)
	}
	closed := sent(t, Refuse(CodeInvalidSession, "there is no session with this token").Closed(true))
	if code, _ := closed.Headers.Uint32(1014); closed.Type != 60785 || code != 3 || string(closed.Body) != "Invalid Session" ||
		string(closed.Headers[1033]) != `{"message":"Invalid Session","code":3,"retryHint":2}` {
		t.Errorf("a client is answered %d %q %q", closed.Type, closed.Headers, closed.Body)
	}
	if later := Refuse(CodeInvalidSession, "the session is over").Closed(false); string(later.Body) != "the session is over" {
		t.Errorf("a client that has asked for nothing is told %q", later.Body)
	}
	if plain := (&Refusal{Text: "the connection has ended"}).Closed(false); len(plain.Headers) != 0 {
		t.Errorf("an end that is no refusal has the headers %q", plain.Headers)
	}
}

// TestForeignRefusals reads what routers and controllers of others send.
func TestForeignRefusals(t *testing.T) {
	three := []byte{3, 0, 0, 0}
	for name, test := range map[string]struct {
		f     wire.Frame
		code  ErrorCode
		retry RetryHint
		text  string
	}{
		"a router that gives no code": {wire.Frame{Type: TypeClosed, Body: []byte("Invalid Session\n")}, 0, RetryDefault, "Invalid Session"},
		"one that says nothing":       {wire.Frame{Type: TypeClosed}, 0, RetryDefault, "without a reason"},
		"one with a code":             {wire.Frame{Type: TypeClosed, Headers: wire.Headers{1014: {14, 0, 0, 0}}, Body: []byte("no")}, CodeAccessDenied, RetryDefault, "no"},
		"one of the second generation": {wire.Frame{Type: TypeClosed, Headers: wire.Headers{
			1014: {13, 0, 0, 0}, 1033: []byte(`{"message":"m","code":13,"cause":null,"retryHint":3}`)}, Body: []byte("m")}, CodeInvalidInstance, RetryNever, "m"},
		"one that names a cause":        {wire.Frame{Type: TypeClosed, Headers: wire.Headers{1033: []byte(`{"code":9,"cause":{"a":1},"retryHint":1}`)}}, CodeInvalidPrecedence, RetryTooBusy, CodeInvalidPrecedence.Sentence()},
		"one that contradicts itself":   {wire.Frame{Type: TypeClosed, Headers: wire.Headers{1014: {8, 0, 0, 0}, 1033: []byte(`{"code":9,"retryHint":3}`)}}, CodeInvalidTerminator, RetryDefault, CodeInvalidTerminator.Sentence()},
		"one that sends nonsense":       {wire.Frame{Type: TypeClosed, Headers: wire.Headers{1014: {8}, 1033: []byte(`{"code":-1`), 1104: {}}, Body: []byte("x")}, 0, RetryDefault, "x"},
		"a controller without a hint":   {wire.Frame{Type: TypeError, Headers: wire.Headers{1014: three}, Body: []byte("invalid session")}, CodeInvalidSession, RetryStartOver, CodeInvalidSession.Sentence()},
		"a controller that limits":      {wire.Frame{Type: TypeResult, Headers: wire.Headers{2: {0}, 10: {1, 0, 0, 0}}, Body: []byte("slow down")}, CodeInternal, RetryTooBusy, "slow down"},
		"a controller that says no":     {wire.Frame{Type: TypeResult, Headers: wire.Headers{2: {0}}, Body: []byte("no")}, 0, RetryNever, "no"},
		"a controller, and a code only": {wire.Frame{Type: TypeError, Headers: wire.Headers{1014: {5, 0, 0, 0}}}, CodeRouterNotAllowed, RetryStartOver, CodeRouterNotAllowed.Sentence()},
	} {
		got := RefusalIn(sent(t, &test.f))
		if got.Code != test.code || got.Retry != test.retry || got.Error() != test.text || (got.Name() == "") != (test.code == 0) {
			t.Errorf("%s: %+v (%s)", name, got, got)
		}
	}
	for name, test := range map[string]struct {
		said  TerminatorCreated
		code  ErrorCode
		retry RetryHint
	}{
		"a result alone":             {TerminatorCreated{Result: TerminatorInvalidSession}, CodeInvalidSession, RetryStartOver},
		"that there is another":      {TerminatorCreated{Result: TerminatorConflict}, CodeInvalidTerminator, RetryStartOver},
		"no more than that it is so": {TerminatorCreated{Result: TerminatorFailed}, 0, RetryDefault},
		"a code":                     {TerminatorCreated{Result: TerminatorFailed, ErrorCode: CodeInvalidCost, Retry: RetryNever}, CodeInvalidCost, RetryNever},
	} {
		if got := test.said.Refusal(); got.Code != test.code || got.Retry != test.retry {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestCodesAreExplained holds the page on codes to those that there are.
func TestCodesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../../docs/codes.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int{"BUSY": int(CodeInternal)}
	for code := range codes[1:] {
		rows[ErrorCode(code+1).String()] = code + 1
	}
	for route := range routes {
		rows[RouteError(route).String()] = route
	}
	for name, number := range rows {
		if row := fmt.Sprintf("| `%s` | %d | `Err", name, number); !strings.Contains(string(page), row) {
			t.Errorf("there is no row that begins with %s", row)
		}
	}
	if got := strings.Count(string(page), "| `Err"); got != len(rows) {
		t.Errorf("there are %d rows for %d codes", got, len(rows))
	}
}

// FuzzRefusalIn reads refusals with anything in their headers.
func FuzzRefusalIn(f *testing.F) {
	f.Add(TypeClosed, []byte{3, 0, 0, 0}, []byte(`{"message":"m","code":3,"retryHint":2}`), []byte{5}, []byte("text"))
	f.Add(TypeError, []byte{8, 0, 0, 0}, []byte{1, 0, 0, 0}, []byte{}, []byte(""))
	f.Fuzz(func(t *testing.T, typ int32, code, hint, route, text []byte) {
		r := RefusalIn(&wire.Frame{Type: typ, Headers: wire.Headers{1014: code, 1033: hint, 18: hint, 10: hint, 1104: route}, Body: text})
		if r.Error() == "" || (r.Code == 0) != (r.Name() == "") {
			t.Errorf("%+v says %q and is called %q", r, r.Error(), r.Name())
		}
		again := RefusalIn(sent(t, r.Closed(true)))
		if again.Code != r.Code || again.Name() != r.Name() {
			t.Errorf("%+v becomes %+v", r, again)
		}
	})
}
