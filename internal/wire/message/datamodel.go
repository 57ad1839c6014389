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
	Action       DataAction        `pb:"1"`
	Synthetic    bool              `pb:"3"`
	Identity     *DataIdentity     `pb:"10"`
	Service      *DataService      `pb:"11"`
	Policy       *DataPolicy       `pb:"12"`
	PublicKey    *PublicKey        `pb:"14"`
	PolicyChange *DataPolicyChange `pb:"16"`
	ConfigType   *DataConfigType   `pb:"17"`
	Config       *DataConfig       `pb:"18"`
}

// DataAction is what happened.
type DataAction uint32

// The actions.
const (
	DataCreate DataAction = iota
	DataUpdate
	DataDelete
)

// DataIdentity is an identity.
type DataIdentity struct {
	ID                 string                `pb:"1"`
	Name               string                `pb:"2"`
	Precedence         Precedence            `pb:"3"`
	Cost               uint32                `pb:"4"`
	ServicePrecedences map[string]Precedence `pb:"5"` // by id of the service
	ServiceCosts       map[string]uint32     `pb:"6"`
	AppData            []byte                `pb:"7"`
	Disabled           bool                  `pb:"9"`
}

// DataService is a service.
type DataService struct {
	ID                 string   `pb:"1"`
	Name               string   `pb:"2"`
	EncryptionRequired bool     `pb:"3"`
	Configs            []string `pb:"4"`
}

// DataPolicy gives services to identities, as changes of it say.
type DataPolicy struct {
	ID   string     `pb:"1"`
	Name string     `pb:"2"`
	Type PolicyType `pb:"3"`
}

// PolicyType is what a policy lets somebody do.
type PolicyType uint32

// The types.
const (
	PolicyDial PolicyType = 1
	PolicyBind PolicyType = 2
)

// DataPolicyChange adds to what a policy joins, or takes away from it.
type DataPolicyChange struct {
	PolicyID string       `pb:"1"`
	IDs      []string     `pb:"2"`
	Of       PolicyMember `pb:"3"`
	Add      bool         `pb:"4"`
}

// PolicyMember is what a policy joins.
type PolicyMember uint32

// The members.
const (
	MemberService  PolicyMember = 1
	MemberIdentity PolicyMember = 2
)

// DataConfigType is the type of configs.
type DataConfigType struct {
	ID   string `pb:"1"`
	Name string `pb:"2"`
}

// DataConfig is a config.
type DataConfig struct {
	ID     string `pb:"1"`
	TypeID string `pb:"2"`
	Name   string `pb:"3"`
	Data   []byte `pb:"4"` // JSON
}

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
