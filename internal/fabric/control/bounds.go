package control

import (
	"fmt"

	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// usual is how large the body of a frame may be of which nothing else is said.
const usual = 64 << 10

// bodies is how large those may be that list much: what a router carries and is
// linked with, who is connected to it, and what it has measured.
var bodies = map[int32]int{
	message.TypeInspectResponse:      channel.MaxBody,
	message.TypeMetrics:              channel.MaxBody,
	message.TypeRouterLinks:          channel.MaxBody,
	message.TypeConnectEvents:        channel.MaxBody,
	message.TypeCircuitConfirmation:  channel.MaxBody,
	message.TypeTerminatorsValidated: channel.MaxBody,
	message.TypeValidateSessions:     channel.MaxBody,
	message.TypeAPISessionHeartbeat:  channel.MaxBody,
	message.TypeCreateTunnelCircuit:  2 << 20,
	message.TypeListTunnelServices:   2 << 20,
	message.TypeFault:                1 << 20,
	message.TypeRemoveTerminators:    1 << 20,
	message.TypeAlerts:               1 << 20,
	message.TypeDeviceReport:         512 << 10,
}

// unfit reports whether a frame is larger than any of its kind need be: such are
// not even read. It does not end the connection, since it may be the word of a
// client that its router has passed on. Either is waited for if the router is
// ahead of what it may say.
func (r *Router) unfit(typ int32, headers, body int) bool {
	pause(r.Context(), r.paces.reading.take(r.all.opt.Now(), headers+body+frameCost))
	most, listed := bodies[typ]
	if !listed {
		most = usual
	}
	if headers <= channel.MaxHeaders && body <= most {
		return false
	}
	r.Misbehaves(TooLarge, fmt.Sprintf("a frame of type %d has %d bytes of headers and %d of body", typ, headers, body))
	return true
}
