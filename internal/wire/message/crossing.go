package message

// Types of frames of streams, on links and to clients that are ends of streams
// themselves.
const (
	TypePayload       int32 = 1100
	TypeAck           int32 = 1101
	TypeStreamControl int32 = 1102
	TypeCircuitEnded  int32 = 1103 // of a client; its body is the circuit's id
)

// Headers of frames of streams.
const (
	// Headers from HeaderPayload on are those of the payload itself.
	HeaderPayload       int32 = 2000
	HeaderPayloadLast   int32 = 2255
	HeaderStreamCircuit int32 = 2256
	HeaderStreamSeq     int32 = 2257
	HeaderStreamFlags   int32 = 2258
	HeaderStreamHeld    int32 = 2259
	HeaderStreamStamp   int32 = 2260
)

// Headers of what TypeStreamControl says: the way that a circuit takes.
const (
	HeaderControlHops    int32 = 20
	HeaderControlHopType int32 = 21
	HeaderControlHopID   int32 = 22
	HeaderControlTime    int32 = 23
	HeaderControlUser    int32 = 24
	HeaderControlError   int32 = 25
)

// Headers of a hello on a link. Their numbers mean other things elsewhere.
const (
	HeaderLinkConn      int32 = 0
	HeaderLinkSplit     int32 = 1
	HeaderLinkRouter    int32 = 2
	HeaderLinkVersion   int32 = 3
	HeaderLinkBinding   int32 = 4
	HeaderLinkIteration int32 = 5
	HeaderLinkDialed    int32 = 6
)
