package rest

import (
	"net/http"
	"testing"
)

func TestBearer(t *testing.T) {
	for _, test := range []struct {
		header http.Header
		want   string
	}{
		{http.Header{}, ""},
		{http.Header{"Authorization": {"Bearer x"}}, "x"},
		{http.Header{"Authentication": {"Bearer x"}}, "x"},
		{http.Header{"Authorization": {"Bearer x", "Bearer x"}}, ""},
		{http.Header{"Authorization": {"Bearer x"}, "Authentication": {"Bearer x"}}, ""},
		{http.Header{"Authorization": {"bearer x"}}, ""},
		{http.Header{"Authorization": {"BEARER x"}}, ""},
		{http.Header{"Authorization": {"Bearer"}}, ""},
		{http.Header{"Authorization": {" Bearer x"}}, ""},
		{http.Header{"Authorization": {"Basic x"}}, ""},
		{http.Header{"Authorization": {"Bearer\tx"}}, ""},
	} {
		if got := (&Call{request: &http.Request{Header: test.header}}).Bearer(); got != test.want {
			t.Errorf("%v: %q, want %q", test.header, got, test.want)
		}
	}
}
