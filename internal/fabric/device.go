package fabric

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/fabric/control"
	"netkeep.internal/internal/fabric/permit"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/policy/posture"
	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/message"
)

// Devices takes what clients report of theirs.
type Devices interface {
	Told(ctx context.Context, by state.Author, api *model.APISession, responses []posture.Response) error
}

// Bounds on what a client may report at once.
const (
	maxReportBytes = 256 << 10
	maxReports     = 1000
)

// onDeviceReport hears what a client has told a router of its device. The
// router is answered with a result that the client need not try again, or with
// an error that it may.
func (f *Fabric) onDeviceReport(r *control.Router, frame *wire.Frame) {
	started := r.For(frame, func(ctx context.Context) {
		err := f.report(ctx, r, frame)
		refused, ok := permit.AsRefusal(err)
		switch {
		case err == nil:
			r.Result(frame, true, "")
		case fault.Is(err, fault.CodeInvalid):
			r.Reply(frame, (&message.Refusal{Text: err.Error()}).Final())
		case ok && refused.Retry != message.RetryTooBusy:
			r.Reply(frame, refused.Final())
		default:
			r.Say(slog.LevelWarn, "what a client reports could not be written down; its router tries again", "error", err)
			r.Refuse(frame, control.TryAgain)
		}
	})
	if !started {
		r.Refuse(frame, control.Busy)
	}
}

func (f *Fabric) report(ctx context.Context, r *control.Router, frame *wire.Frame) error {
	api, err := permit.Client(f.opt.State.Snapshot(), f.opt.Sessions, r.ID, frame.Headers.Text(message.HeaderAPISessionToken))
	if err != nil {
		return err
	}
	responses, err := reported(frame.Body)
	if err != nil {
		return err
	}
	return r.Writing(ctx, func() error { return f.opt.Devices.Told(ctx, r.Author("createPostureResponse", frame), api, responses) })
}

// reported reads what a client reports of its device.
func reported(body []byte) ([]posture.Response, error) {
	if len(body) > maxReportBytes {
		return nil, fault.New(fault.CodeInvalid, fmt.Sprintf("a report must be at most %d bytes long", maxReportBytes))
	}
	told, err := message.Unmarshal[message.Posture](body)
	if err != nil {
		return nil, fault.Wrap(fault.CodeInvalid, err)
	}
	var all []posture.Response
	for i := range told.Reports {
		all = appendReport(all, &told.Reports[i])
	}
	if len(all) > maxReports {
		return nil, fault.New(fault.CodeInvalid, fmt.Sprintf("there must be at most %d reports at once", maxReports))
	}
	return all, nil
}

// appendReport adds what one report says, in the words of the Client API.
func appendReport(all []posture.Response, r *message.PostureReport) []posture.Response {
	if r.MACs != nil {
		all = append(all, posture.Response{TypeID: posture.TypeMAC, MACAddresses: r.MACs.Addresses})
	}
	if r.OS != nil {
		all = append(all, posture.Response{TypeID: posture.TypeOS, Type: r.OS.Type, Version: r.OS.Version, Build: r.OS.Build})
	}
	if r.Programs != nil {
		for _, p := range r.Programs.List {
			all = append(all, posture.Response{TypeID: posture.TypeProcess, Path: p.Path, IsRunning: p.Running, Hash: p.Hash, SignerFingerprints: p.Signers})
		}
	}
	if r.Domain != nil {
		all = append(all, posture.Response{TypeID: posture.TypeDomain, Domain: r.Domain.Name})
	}
	if r.Woken != nil {
		all = append(all, posture.Response{TypeID: posture.TypeEndpoint, Woken: true, At: moment(r.Woken.At)})
	}
	if r.Unlocked != nil {
		all = append(all, posture.Response{TypeID: posture.TypeEndpoint, Unlocked: true, At: moment(r.Unlocked.At)})
	}
	return all
}

// moment is when something happened; zero if nobody says.
func moment(t message.Timestamp) time.Time {
	if t == (message.Timestamp{}) {
		return time.Time{}
	}
	return time.Unix(t.Seconds, int64(t.Nanos)).UTC()
}
