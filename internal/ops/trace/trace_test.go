package trace

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestWanted(t *testing.T) {
	for name, test := range map[string]struct {
		env  string
		on   bool
		fail string
	}{
		"nothing said":      {},
		"an endpoint":       {env: "OTEL_EXPORTER_OTLP_ENDPOINT=http://x", on: true},
		"one for traces":    {env: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://x/v1/traces", on: true},
		"an exporter":       {env: "OTEL_TRACES_EXPORTER=otlp", on: true},
		"none":              {env: "OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_ENDPOINT=http://x"},
		"disabled":          {env: "OTEL_SDK_DISABLED=TRUE OTEL_EXPORTER_OTLP_ENDPOINT=http://x"},
		"another exporter":  {env: "OTEL_TRACES_EXPORTER=zipkin", fail: `OTEL_TRACES_EXPORTER must be otlp or none, not "zipkin"`},
		"our protocol":      {env: "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_EXPORTER_OTLP_ENDPOINT=http://x", on: true},
		"another protocol":  {env: "OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_TRACES_EXPORTER=otlp", fail: `OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not "grpc"`},
		"only other things": {env: "OTEL_SERVICE_NAME=x OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
	} {
		env := map[string]string{}
		for entry := range strings.FieldsSeq(test.env) {
			key, value, _ := strings.Cut(entry, "=")
			env[key] = value
		}
		on, err := wanted(func(name string) string { return env[name] })
		if on != test.on || (err == nil) != (test.fail == "") || err != nil && err.Error() != test.fail {
			t.Errorf("%s: %v, %v", name, on, err)
		}
	}
}

// TestReport says once that the collector is gone and once that it is back.
func TestReport(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusBadRequest) // one that is not tried again
		}
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	var log bytes.Buffer
	tracer, err := Open(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		t.Helper()
		_, end := tracer.Request(httptest.NewRequest(http.MethodGet, "/", nil), "test", "/")
		end(http.StatusOK)
		if err := tracer.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	send()
	send()
	down.Store(false)
	send()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost, back := strings.Count(log.String(), "traces could not be sent"), strings.Count(log.String(), "traces are sent again")
	if lost != 1 || back != 1 || strings.Count(log.String(), "\n") != 2 {
		t.Errorf("the log is\n%s", log.String())
	}
}
