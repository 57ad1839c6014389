// Package trace tells an OpenTelemetry collector of requests, if the standard
// variables in the environment say where one is. It is the one exception to
// the rule that only package egress sends anything out: the operator names the
// collector, and the exporter has a client of its own. It imports nothing of
// ours.
package trace

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Tracer makes spans and sends them to the collector.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Open returns a tracer as the environment asks for it; nil if it asks for
// none. Nothing is sent before the first span ends.
func Open(ctx context.Context, log *slog.Logger) (*Tracer, error) {
	on, err := wanted(os.Getenv)
	if !on || err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	// What the environment says of the service goes before our name.
	self, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "netkeep")), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(&reporter{SpanExporter: exporter, log: log}), sdk.WithResource(self))
	return &Tracer{provider: provider, tracer: provider.Tracer("netkeep")}, nil
}

// wanted reads from the environment whether there are to be traces.
func wanted(getenv func(string) string) (bool, error) {
	first := func(names ...string) string {
		for _, name := range names {
			if value := getenv(name); value != "" {
				return value
			}
		}
		return ""
	}
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); {
	case exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER must be otlp or none, not %q", exporter)
	}
	if p := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not %q", p)
	}
	return true, nil
}

// Close sends what was not sent yet, for as long as ctx lets it.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// w3c reads the traceparent header of a request.
var w3c propagation.TraceContext

// Request begins the span of a request, within that of whoever sent it if it
// says so. It returns the context for the work on it and what to call with the
// status in the end. route must be one of few.
func (t *Tracer) Request(r *http.Request, name, route string) (context.Context, func(status int)) {
	ctx := w3c.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("http.request.method", r.Method), attribute.String("http.route", route)))
	return ctx, func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// Commit adds a span within that of a request: its write was stored, or was
// not, together with others.
func (t *Tracer) Commit(ctx context.Context, start time.Time, took time.Duration, writes int, err error) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return // nobody's request
	}
	_, span := t.tracer.Start(ctx, "store commit", trace.WithTimestamp(start), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.Int("netkeep.commit.writes", writes)))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(start.Add(took)))
}

// reporter logs when the collector stops to take spans and when it takes them
// again. Spans that it does not take are lost.
type reporter struct {
	sdk.SpanExporter
	log     *slog.Logger
	failing bool // one export runs at a time
}

// ExportSpans is for [sdk.SpanExporter].
func (r *reporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !r.failing:
		r.log.Warn("traces could not be sent", "error", err)
	case err == nil && r.failing:
		r.log.Info("traces are sent again")
	}
	r.failing = err != nil
	return nil
}
