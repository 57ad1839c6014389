package message

// EdgeALPN and LinkALPN are the protocols that clients and other routers ask a
// router for. Not every client asks for one.
const (
	EdgeALPN = "ziti-edge"
	LinkALPN = "ziti-link"
)

// Types of frames between a client and a router.
const (
	TypeConnect         int32 = 60783 // its body is the session's token
	TypeConnected       int32 = 60784
	TypeClosed          int32 = 60785 // its body says why
	TypeData            int32 = 60786
	TypeDial            int32 = 60787 // its body is the token of the session that hosts
	TypeDialSuccess     int32 = 60788 // its body is the new connection's id
	TypeDialFailed      int32 = 60789 // its body says why
	TypeBind            int32 = 60790 // its body is the session's token
	TypeUnbind          int32 = 60791
	TypeUpdateBind      int32 = 60794
	TypeBindHealth      int32 = 60795
	TypeTraceRoute      int32 = 60796
	TypeTraced          int32 = 60797
	TypeConnInspect     int32 = 60798
	TypeConnInspected   int32 = 60799
	TypeBound           int32 = 60800
	TypeTokenUpdated    int32 = 60801
	TypeTokenNotUpdated int32 = 60802
	TypeUpdateToken     int32 = 60803
	TypeClientInspect   int32 = 60804
	TypeClientInspected int32 = 60805
	TypePosture         int32 = 10800
)

// Headers of frames between a client and a router.
const (
	HeaderConn            int32 = 1000
	HeaderStateSeq        int32 = 1001
	HeaderClientToken     int32 = 1002 // of the API session; of hellos
	HeaderPublicKey       int32 = 1003
	HeaderCost            int32 = 1004
	HeaderPrecedence      int32 = 1005
	HeaderInstance        int32 = 1006
	HeaderInstanceSecret  int32 = 1007
	HeaderCallerID        int32 = 1008
	HeaderCryptoMethod    int32 = 1009
	HeaderDataFlags       int32 = 1010
	HeaderAppData         int32 = 1011
	HeaderRouterNumbers   int32 = 1012 // whether the router numbers connections; of a dial the number
	HeaderHealthy         int32 = 1013
	HeaderTraceTime       int32 = 1015
	HeaderTraceHops       int32 = 1016
	HeaderTraceHopType    int32 = 1017
	HeaderTraceHopID      int32 = 1018
	HeaderTraceSource     int32 = 1019
	HeaderTraceError      int32 = 1020
	HeaderBindID          int32 = 1021 // stable for a client's listener
	HeaderConnType        int32 = 1022
	HeaderInspectable     int32 = 1023
	HeaderTellsBound      int32 = 1024
	HeaderMarker          int32 = 1025
	HeaderClientCircuit   int32 = 1026
	HeaderSticky          int32 = 1027
	HeaderClientFlow      int32 = 1028 // the client is an end of the stream itself
	HeaderControllerID    int32 = 1029
	HeaderStreamAddress   int32 = 1030
	HeaderInspectValues   int32 = 1031
	HeaderTakesPosture    int32 = 1032
	HeaderStructuredError int32 = 1033
	HeaderDialerID        int32 = 1034
	HeaderDialerName      int32 = 1035
)

// Flags of data, in HeaderDataFlags.
const (
	DataFIN       uint32 = 1  // the sender sends no more
	DataTraced    uint32 = 2  // it has an id of its own
	DataTakesMany uint32 = 4  // the sender takes several messages in one
	DataStream    uint32 = 8  // boundaries of messages do not matter
	DataMany      uint32 = 16 // this is several messages in one
)

// What a connection of a client is, in HeaderConnType.
const (
	ConnDial byte = 1
	ConnBind byte = 2
)

// FirstAssigned is the first of the numbers that routers give connections;
// below are those that clients give.
const FirstAssigned uint32 = 1 << 31
