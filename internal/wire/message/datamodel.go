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

// CompareDataModel is TypeCompareDataModel: what a router should know, and whether it is to
// take that for what it knows if it differs.
type CompareDataModel struct {
	State DataState `pb:"1"`
	Mend  bool      `pb:"2"`
}

// DataModelCompared is TypeDataModelCompared.
type DataModelCompared struct {
	Differences []DataDifference `pb:"3"`
}

// DataDifference is one that a router finds.
type DataDifference struct {
	Kind   string `pb:"1"`
	ID     string `pb:"2"`
	What   string `pb:"3"`
	Detail string `pb:"4"`
}

// DataEvent is one change of what routers know: one of its pointers is set.
type DataEvent struct {
	Action       DataAction        `pb:"1"`
	Synthetic    bool              `pb:"3"`
	Identity     *DataIdentity     `pb:"10"`
	Service      *DataService      `pb:"11"`
	Policy       *DataPolicy       `pb:"12"`
	Check        *DataCheck        `pb:"13"`
	PublicKey    *PublicKey        `pb:"14"`
	Revocation   *Revocation       `pb:"15"`
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
	MemberCheck    PolicyMember = 3
)

// DataCheck is what devices must look like: one of its pointers is set.
type DataCheck struct {
	ID       string         `pb:"1"`
	Name     string         `pb:"2"`
	Type     string         `pb:"4"`
	MACs     *CheckMACs     `pb:"7"`
	Factor   *CheckFactor   `pb:"8"`
	Systems  *CheckSystems  `pb:"9"`
	Program  *CheckProgram  `pb:"10"`
	Programs *CheckPrograms `pb:"11"`
	Domains  *CheckDomains  `pb:"12"`
}

// CheckMACs are hardware addresses of which a device must have one.
type CheckMACs struct {
	Addresses []string `pb:"1"`
}

// CheckFactor is when a second factor must have been shown.
type CheckFactor struct {
	Seconds  int64 `pb:"1"` // that it lasts; -1 for ever
	OnWake   bool  `pb:"2"`
	OnUnlock bool  `pb:"3"`
	Lenient  bool  `pb:"4"`
}

// CheckSystems are operating systems of which a device must run one.
type CheckSystems struct {
	List []CheckSystem `pb:"1"`
}

// CheckSystem is one of them, in versions of which one must do.
type CheckSystem struct {
	Type     string   `pb:"1"`
	Versions []string `pb:"2"`
}

// CheckProgram is a program that must run on a device.
type CheckProgram struct {
	System  string   `pb:"1"`
	Path    string   `pb:"2"`
	Hashes  []string `pb:"3"`
	Signers []string `pb:"4"` // fingerprints
}

// CheckPrograms are several, all of which or one of which must run.
type CheckPrograms struct {
	Semantic string         `pb:"1"`
	List     []CheckProgram `pb:"2"`
}

// CheckDomains are Windows domains of which a device must be in one.
type CheckDomains struct {
	Domains []string `pb:"1"`
}

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

// Revocation says that what routers believe because of a signature is over.
type Revocation struct {
	ID      string    `pb:"1"`
	Expires Timestamp `pb:"2"` // until when somebody may have a token of it
	Type    string    `pb:"3"`
}

// RevokedAPISession is the type of one whose ID is that of an API session.
const RevokedAPISession = "API_SESSION"

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
