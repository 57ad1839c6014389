package monitoring_test

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collected "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"netkeep.internal/test/servertest"
)

// collector keeps the spans that it is sent, by name.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    map[string][]*otlp.Span
	services map[string]bool
}

func newCollector(t *testing.T) *collector {
	c := &collector{spans: map[string][]*otlp.Span{}, services: map[string]bool{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		var sent collected.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(text, &sent) != nil {
			t.Errorf("%s: %v: what was sent cannot be read", r.URL, err)
		}
		c.keep(&sent)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) keep(sent *collected.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range sent.ResourceSpans {
		for _, a := range rs.Resource.Attributes {
			if a.Key == "service.name" {
				c.services[a.Value.GetStringValue()] = true
			}
		}
		for _, scope := range rs.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans[span.Name] = append(c.spans[span.Name], span)
			}
		}
	}
}

// attributes are those of a span, as text or number.
func attributes(span *otlp.Span) map[string]any {
	all := map[string]any{}
	for _, a := range span.Attributes {
		if all[a.Key] = a.Value.GetStringValue(); all[a.Key] == "" {
			all[a.Key] = a.Value.GetIntValue()
		}
	}
	return all
}

const (
	theirTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	theirSpan  = "00f067aa0ba902b7"
)

// TestTraces finds a span for each request, within the client's own, and the
// store's within it.
func TestTraces(t *testing.T) {
	c := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	t.Setenv("OTEL_SERVICE_NAME", "controller-7")
	s, err := servertest.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	admin := s.Admin(t)
	traced := admin.With("traceparent", "00-"+theirTrace+"-"+theirSpan+"-01")
	id := traced.Post("config-types", M{"name": "x", "schema": M{}}).Want(http.StatusCreated).ID()
	admin.With("traceparent", "nonsense").Get("config-types/" + id).Want(http.StatusOK)
	admin.Get("config-types/none").Want(http.StatusNotFound)
	if err := s.Close(); err != nil { // which sends the rest
		t.Fatal(err)
	}
	if !c.services["controller-7"] || len(c.services) != 1 {
		t.Errorf("services are %v", c.services)
	}
	create := c.spans["createConfigType"]
	if len(create) != 1 || hex.EncodeToString(create[0].TraceId) != theirTrace || hex.EncodeToString(create[0].ParentSpanId) != theirSpan {
		t.Fatalf("spans of the create: %v", create)
	}
	if a := attributes(create[0]); a["http.response.status_code"] != int64(201) || a["http.request.method"] != "POST" ||
		a["http.route"] != "/edge/management/v1/config-types" {
		t.Errorf("attributes %v", a)
	}
	commits := 0
	for _, span := range c.spans["store commit"] {
		if hex.EncodeToString(span.TraceId) != theirTrace {
			continue
		}
		commits++
		if string(span.ParentSpanId) != string(create[0].SpanId) || attributes(span)["netkeep.commit.writes"] != int64(1) {
			t.Errorf("the commit's span is %v", span)
		}
	}
	details := c.spans["detailConfigType"]
	if commits != 1 || len(details) != 2 || len(c.spans["authenticate"]) != 1 {
		t.Fatalf("%d commits, %d details, %d logins", commits, len(details), len(c.spans["authenticate"]))
	}
	if a := attributes(details[1]); len(details[0].ParentSpanId) != 0 || a["http.response.status_code"] != int64(404) {
		t.Errorf("the spans of reads are %v", details)
	}
	for name, spans := range c.spans {
		for _, span := range spans {
			for key, value := range attributes(span) {
				if value == id || key == "http.route" && value == "/edge/management/v1/config-types/"+id {
					t.Errorf("the span %s tells the id", name)
				}
			}
		}
	}
}

// TestWrongTraces does not start with settings that cannot be followed.
func TestWrongTraces(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "zipkin")
	if _, err := servertest.Open(t.TempDir()); err == nil || err.Error() != `start: OTEL_TRACES_EXPORTER must be otlp or none, not "zipkin"` {
		t.Errorf("it started: %v", err)
	}
}

// TestDeadCollector serves and stops though nobody takes the spans.
func TestDeadCollector(t *testing.T) {
	c := newCollector(t)
	c.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
	s, err := servertest.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.Admin(t).Get("config-types").Want(http.StatusOK)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if !s.Logged("traces could not be sent") {
		t.Error("nobody is told")
	}
}
