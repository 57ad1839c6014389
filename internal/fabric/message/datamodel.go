package message

// SubscribeToDataModel is TypeSubscribeToDataModel.
type SubscribeToDataModel struct {
	Index        uint64 `pb:"1"`
	Seconds      uint32 `pb:"2"`
	Renew        bool   `pb:"3"`
	Timeline     string `pb:"4"`
	Subscription string `pb:"5"`
}

// DataState is TypeDataState: everything that a router may know.
type DataState struct {
	Events   []DataEvent `pb:"1"`
	Index    uint64      `pb:"2"`
	Timeline string      `pb:"3"`
}

// DataChanges is TypeDataChanges.
type DataChanges struct {
	Index     uint64      `pb:"1"`
	Synthetic bool        `pb:"2"`
	Changes   []DataEvent `pb:"3"`
	Timestamp string      `pb:"4"`
	Previous  uint64      `pb:"5"`
}

// DataEvent is one change of what routers know: one of its pointers is set.
type DataEvent struct {
	Action    DataAction `pb:"1"`
	Synthetic bool       `pb:"3"`
	PublicKey *PublicKey `pb:"14"`
}

// DataAction is what happened.
type DataAction uint32

// The actions.
const (
	DataCreate DataAction = iota
	DataUpdate
	DataDelete
)

// PublicKey is a key that routers check tokens or certificates with.
type PublicKey struct {
	Data   []byte      `pb:"1"`
	KeyID  string      `pb:"2"`
	Usages []KeyUsage  `pb:"3"`
	Format KeyEncoding `pb:"4"`
}

// KeyUsage is what a key is good for.
type KeyUsage uint32

// The usages.
const (
	ForTokens KeyUsage = iota
	ForClientCertificates
)

// KeyEncoding is the form of a key.
type KeyEncoding uint32

// The forms.
const (
	KeyCertificate KeyEncoding = iota
	KeyPKIX
)
