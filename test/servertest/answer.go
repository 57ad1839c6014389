package servertest

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Answer is what a controller answered.
type Answer struct {
	Status int
	Header http.Header
	Raw    []byte
	JSON   any // Raw decoded, if it is JSON

	t    testing.TB
	what string
}

// receive sends a request and keeps what comes back.
func (a *Answer) receive(client *http.Client, req *http.Request) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	a.Status, a.Header = resp.StatusCode, resp.Header
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp.Body.Close() // it has no end that one could wait for
	}
	a.Raw, err = io.ReadAll(resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// Want ends the test unless the answer has the status.
func (a *Answer) Want(status int) *Answer {
	a.t.Helper()
	if a.Status != status {
		a.t.Fatalf("%s: status %d, want %d\n%s", a.what, a.Status, status, a.Raw)
	}
	return a
}

// Fails reports an answer that is not this failure. field is the one that the
// cause names, empty for a failure of no field.
func (a *Answer) Fails(status int, code, field string) *Answer {
	a.t.Helper()
	gotField, _ := a.At("error.cause.field").(string)
	if a.Status != status || a.At("error.code") != code || gotField != field {
		a.t.Errorf("%s: status %d, code %v, field %q; want %d, %s, %q\n%s",
			a.what, a.Status, a.At("error.code"), gotField, status, code, field, a.Raw)
	}
	return a
}

// At returns the value at a dotted path, nil if there is none. Members of
// lists are numbers.
func (a *Answer) At(path string) any {
	v := a.JSON
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case M:
			v = x[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// Data returns the object that the answer carries.
func (a *Answer) Data() M {
	a.t.Helper()
	data, ok := a.At("data").(M)
	if !ok {
		a.t.Fatalf("%s: there is no object in the answer: %s", a.what, a.Raw)
	}
	return data
}

// List returns the objects that the answer carries.
func (a *Answer) List() []M {
	a.t.Helper()
	entries, ok := a.At("data").([]any)
	if !ok {
		a.t.Fatalf("%s: there is no list in the answer: %s", a.what, a.Raw)
	}
	list := make([]M, len(entries))
	for i, e := range entries {
		list[i] = e.(M)
	}
	return list
}

// ID returns the id of what was created or read.
func (a *Answer) ID() string {
	a.t.Helper()
	id, ok := a.Data()["id"].(string)
	if !ok {
		a.t.Fatalf("%s: there is no id in the answer: %s", a.what, a.Raw)
	}
	return id
}

// Total is how many records a list matches in all.
func (a *Answer) Total() int {
	a.t.Helper()
	n, ok := a.At("meta.pagination.totalCount").(float64)
	if !ok {
		a.t.Fatalf("%s: the answer has no total: %s", a.what, a.Raw)
	}
	return int(n)
}
