// Package message is what controllers and routers say to each other: the types
// of frames, their headers, and the messages in their bodies. It owns the
// numbers that travel and how a struct becomes bytes. It imports nothing of
// ours and decides nothing.
package message

// Types of frames that every channel knows.
const (
	TypeHello           int32 = 0
	TypePing            int32 = 1
	TypeResult          int32 = 2
	TypeLatency         int32 = 3
	TypeLatencyResponse int32 = 4
	TypeHeartbeat       int32 = 5
	TypeProbe           int32 = -33 // of a router that is about to connect again; needs no answer
)

// Types of frames about routers, links and circuits.
const (
	TypeFault                int32 = 1004
	TypeRoute                int32 = 1005
	TypeUnroute              int32 = 1006
	TypeMetrics              int32 = 1007
	TypeTogglePipes          int32 = 1008
	TypePipeTraced           int32 = 1010
	TypeInspectRequest       int32 = 1013
	TypeInspectResponse      int32 = 1014
	TypeRouteResult          int32 = 1022
	TypeCircuitConfirmation  int32 = 1034
	TypeRouterLinks          int32 = 1035
	TypeVerifyRouter         int32 = 1036
	TypeMembers              int32 = 1037
	TypeRemoveTerminators    int32 = 1038
	TypeQuiesce              int32 = 1039
	TypeDequiesce            int32 = 1040
	TypeValidateTerminators  int32 = 1041
	TypeTerminatorsValidated int32 = 1042
	TypeDecommission         int32 = 1043
	TypePeerStates           int32 = 1050
	TypeInterfaces           int32 = 1052
	TypeLinkState            int32 = 1053
	TypeAlerts               int32 = 1054
	TypeMembersRequest       int32 = 1055
)

// Types of frames about sessions, hosts and dials.
const (
	TypeServerHello          int32 = 20000
	TypeClientHello          int32 = 20001
	TypeError                int32 = 20002
	TypeSessionsRemoved      int32 = 20102
	TypeAPISessionsAdded     int32 = 20200
	TypeAPISessionsUpdated   int32 = 20201
	TypeAPISessionsRemoved   int32 = 20202
	TypeAPISessionHeartbeat  int32 = 20203
	TypeResyncRequest        int32 = 20204
	TypeUpdateTerminator     int32 = 20209
	TypeTerminatorUpdated    int32 = 20210
	TypeRemoveTerminator     int32 = 20211
	TypeTerminatorRemoved    int32 = 20212
	TypeValidateSessions     int32 = 20213
	TypeHealthEvent          int32 = 20214
	TypeCreateTerminator     int32 = 20216
	TypeTerminatorCreated    int32 = 20217
	TypeCreateCircuit        int32 = 20218
	TypeCircuitCreated       int32 = 20219
	TypeCertificates         int32 = 20301
	TypeExtend               int32 = 20302
	TypeVerifyExtension      int32 = 20303
	TypeConnectEvents        int32 = 20415
	TypeDataState            int32 = 20500
	TypeDataChanges          int32 = 20501
	TypeCompareDataModel     int32 = 20503
	TypeDataModelCompared    int32 = 20504
	TypeSubscribeToDataModel int32 = 20505
)

// Headers that every channel knows.
const (
	HeaderConnectionID      int32 = 0
	HeaderReplyFor          int32 = 1
	HeaderSuccess           int32 = 2
	HeaderVersion           int32 = 4
	HeaderHeartbeat         int32 = 5
	HeaderHeartbeatResponse int32 = 6
	HeaderChannelType       int32 = 7
	HeaderListenerID        int32 = 8
	HeaderGrouped           int32 = 9
	HeaderGroupSecret       int32 = 10
	HeaderGroupFirst        int32 = 11
	// Headers from FirstReflected to LastReflected are copied from a request
	// into its reply.
	FirstReflected int32 = 128
	LastReflected  int32 = 255
)

// Headers of hellos. Routers of the first generation number some of them
// otherwise: there Grouped is not set.
const (
	HeaderOldListeners    int32 = 10
	HeaderOldMetadata     int32 = 11
	HeaderOldCapabilities int32 = 12
	HeaderListeners       int32 = 1000
	HeaderCapabilities    int32 = 1002
)

// Headers of frames about sessions.
const (
	HeaderSyncStrategy   int32 = 1013
	HeaderSyncState      int32 = 1014
	HeaderErrorCode      int32 = 1014 // of TypeError, TypeResult and TypeClosed
	HeaderDataModel      int32 = 1024
	HeaderDataModelIndex int32 = 1025
	HeaderSubscription   int32 = 1026
	HeaderFailedCircuit  int32 = 1026 // of TypeError
	HeaderRetryHint      int32 = 18   // of TypeError
	HeaderResultCode     int32 = 10   // of TypeResult
)

// ResultRateLimited is why in HeaderResultCode.
const ResultRateLimited = 1

// TypeDeviceReport is a frame of our own, from a router: what a client has
// reported in TypePosture, with its token in HeaderAPISessionToken. The answer
// is TypeResult, or TypeError if it should be told again.
const TypeDeviceReport int32 = 31001

// TypeAuthorities is a frame of our own, to a router that said HeaderAuthorities
// in its hello: whom it is to trust from now on, in the CAs of Certificates. A
// router with others asks for new certificates, with which those come.
const (
	TypeAuthorities   int32 = 31002
	HeaderAuthorities int32 = 31002
)

// TypeFindAPISession is a frame of our own, from a router that was shown a token
// it does not know, in HeaderAPISessionToken: is it that of an API session whose
// holder may use the router? The answer is TypeAPISessionsAdded, or TypeResult
// if not. A controller that knows it says HeaderFinds in the answer to a hello.
const (
	TypeFindAPISession int32 = 31003
	HeaderFinds        int32 = 31003
)

// HeaderDigests is a header of our own. In TypeClientHello it says that the
// router needs no tokens, and in frames that name sessions that there are
// digests in their place.
const HeaderDigests int32 = 31001

// HeaderHostFailed is a header of our own. In TypeDialFailed it says that the
// host could not take the dial, whoever dialled, and would not refuse it.
const HeaderHostFailed int32 = 31002

// HeaderBothEnds is a header of our own. In the answer to a client's hello it says that
// the router tells the two ends of a circuit apart, so that a client may be both.
const HeaderBothEnds int32 = 31004

// Headers of TypeCreateCircuit and TypeCircuitCreated, which have no body.
const (
	HeaderPeerData        int32 = 10
	HeaderSessionToken    int32 = 11
	HeaderFingerprints    int32 = 12
	HeaderInstanceID      int32 = 13
	HeaderAPISessionToken int32 = 14

	HeaderCircuitID      int32 = 11
	HeaderCircuitAddress int32 = 12
	HeaderCircuitTags    int32 = 13
)

// Headers of TypeRouteResult, whose body is the circuit's id.
const (
	HeaderRouteAttempt   int32 = 1101
	HeaderRouteSuccess   int32 = 1102 // there if so
	HeaderRouteError     int32 = 1103
	HeaderRouteErrorCode int32 = 1104
)

// What both ends of a circuit tell each other through those between them.
const (
	PeerPublicKey    uint32 = 1003
	PeerCallerID     uint32 = 1008
	PeerAppData      uint32 = 1011
	PeerLocal        uint32 = 1110 // of the terminator; not for the dialer
	PeerRemote       uint32 = 1111
	PeerDialerLocal  uint32 = 1112 // of the initiator; not for the dialer
	PeerDialerRemote uint32 = 1113
	PeerSticky       uint32 = 1114
	PeerDialerID     uint32 = 1115
	PeerDialerName   uint32 = 1116
)

// Capabilities of a controller, as bits.
const (
	CanTerminatorV2  = 1 << 1
	CanOneSidedLinks = 1 << 2
	CanCircuitV2     = 1 << 3
	CanDataModel     = 1 << 4
	CanGroups        = 1 << 5
	CanTokensAreJWTs = 1 << 6
)

// NewHeaders is the capability of a router that numbers its headers anew and
// groups its connections.
const NewHeaders = 1 << 1

// ALPN is the protocol that routers ask for when they connect to a controller.
const ALPN = "ziti-ctrl"
