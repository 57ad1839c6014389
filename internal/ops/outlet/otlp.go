package outlet

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	collected "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"netkeep.internal/internal/ops/egress"
)

// OTLP has entries sent to a collector of OpenTelemetry as logs, by OTLP over HTTP.
type OTLP struct {
	URL     string // with the path, /v1/logs as a rule
	Token   string // sent as a bearer's; empty for none
	Network string
	Client  *egress.Client
	Log     *slog.Logger

	refused atomic.Int64
}

// prefix is what names of attributes begin with.
const prefix = "netkeep.audit."

// Send is for Outlet.
func (o *OTLP) Send(ctx context.Context, entries []Entry) error {
	return inParts(entries, func(some []Entry) error { return o.send(ctx, some) })
}

func (o *OTLP) send(ctx context.Context, entries []Entry) error {
	scope := &logs.ScopeLogs{Scope: &common.InstrumentationScope{Name: "netkeep.audit"}}
	for _, e := range entries {
		at := uint64(e.Record.CreatedAt.Time().UnixNano())
		scope.LogRecords = append(scope.LogRecords, &logs.LogRecord{
			TimeUnixNano: at, ObservedTimeUnixNano: at, EventName: prefix + e.Record.Event,
			SeverityNumber: logs.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO",
			Body: text(string(e.JSON)), Attributes: attributes(e.JSON),
		})
	}
	body, err := proto.Marshal(&collected.ExportLogsServiceRequest{ResourceLogs: []*logs.ResourceLogs{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{
			{Key: "service.name", Value: text("netkeep")}, {Key: "netkeep.network", Value: text(o.Network)},
		}},
		ScopeLogs: []*logs.ScopeLogs{scope},
	}}})
	if err != nil {
		return err
	}
	answer, err := o.Client.Post(ctx, o.URL, header("application/x-protobuf", o.Token), body)
	if err != nil {
		return err
	}
	var said collected.ExportLogsServiceResponse
	if err := proto.Unmarshal(answer, &said); err == nil && said.GetPartialSuccess().GetRejectedLogRecords() > 0 {
		// They would be refused again, and keep all others back.
		o.refused.Add(min(said.PartialSuccess.RejectedLogRecords, int64(len(entries))))
		o.Log.Error("the collector refused audit entries", "refused", said.PartialSuccess.RejectedLogRecords,
			"from", entries[0].Record.Number, "to", entries[len(entries)-1].Record.Number)
	}
	return nil
}

// Refused is how many entries the collector did not take of those that it answered for.
func (o *OTLP) Refused() int64 { return o.refused.Load() }

// Close is for Outlet.
func (*OTLP) Close() {}

func text(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(s, "?")}}
}

// attributes are the members of an entry that are texts and numbers, by which
// collectors find it.
func attributes(entry []byte) (all []*common.KeyValue) {
	var members map[string]any
	if json.Unmarshal(entry, &members) != nil {
		return nil
	}
	for _, c := range columns { // in their order
		switch v := members[c.Name].(type) {
		case string:
			if v != "" {
				all = append(all, &common.KeyValue{Key: prefix + c.Name, Value: text(v)})
			}
		case float64:
			all = append(all, &common.KeyValue{Key: prefix + c.Name, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: int64(v)}}})
		}
	}
	return all
}
