package zitidb

import "time"

// Common is what most records have.
type Common struct {
	ID        string
	CreatedAt time.Time      `db:"createdAt"`
	UpdatedAt time.Time      `db:"updatedAt"`
	Tags      map[string]any `db:"tags"`
	IsSystem  bool           `db:"isSystem"`
}

func (c *Common) identify(id string) { c.ID = id }

// Identity is somebody or something that authenticates.
type Identity struct {
	Common
	Name                      string                       `db:"name"`
	Type                      string                       `db:"type"`
	IsAdmin                   bool                         `db:"isAdmin"`
	IsDefaultAdmin            bool                         `db:"isDefaultAdmin"`
	AuthPolicyID              string                       `db:"authPolicyId"`
	ExternalID                *string                      `db:"externalId"`
	RoleAttributes            []string                     `db:"roleAttributes"`
	AppData                   map[string]any               `db:"appData"`
	DefaultHostingCost        int32                        `db:"defaultHostingCost"`
	DefaultHostingPrecedence  int32                        `db:"defaultHostingPrecedence"`
	ServiceHostingCosts       map[string]int32             `db:"serviceHostingCosts"`
	ServiceHostingPrecedences map[string]int32             `db:"serviceHostingPrecedences"`
	DisabledAt                *time.Time                   `db:"disabledAt"`
	DisabledUntil             *time.Time                   `db:"disabledUntil"`
	EnvArch                   string                       `db:"envInfoArch"`
	EnvOS                     string                       `db:"envInfoOs"`
	EnvRelease                string                       `db:"envInfoRelease"`
	EnvVersion                string                       `db:"envInfoVersion"`
	EnvDomain                 string                       `db:"envInfoDomain"`
	EnvHostname               string                       `db:"envInfoHostname"`
	SDKBranch                 string                       `db:"sdkInfoBranch"`
	SDKRevision               string                       `db:"sdkInfoRevision"`
	SDKType                   string                       `db:"sdkInfoType"`
	SDKVersion                string                       `db:"sdkInfoVersion"`
	SDKAppID                  string                       `db:"sdkInfoAppId"`
	SDKAppVersion             string                       `db:"sdkInfoAppVersion"`
	ServiceConfigs            map[string]map[string]string `db:"serviceConfigs"` // service, config type, config
	Interfaces                map[string]any               `db:"interfaces"`
	Permissions               []string                     `db:"permissions"`

	_ struct{} `derived:"authenticators enrollments edgeRouterPolicies servicePolicies routers bindServices dialServices"`
}

// Authenticator is how an identity shows who it is.
type Authenticator struct {
	Common
	Method                    string     `db:"method"`
	IdentityID                string     `db:"identity"`
	Username                  string     `db:"updbUsername"`
	Password                  string     `db:"updbPassword"`
	Salt                      string     `db:"updbSalt"`
	Fingerprint               string     `db:"certFingerprint"`
	CertPEM                   string     `db:"certPem"`
	IsIssuedByNetwork         bool       `db:"isIssuedByNetwork"`
	UnverifiedCertPEM         string     `db:"unverifiedCertPem"`
	UnverifiedCertFingerprint string     `db:"unverifiedCertFingerprint"`
	IsExtendRequested         bool       `db:"isExtendRequested"`
	IsKeyRollRequested        bool       `db:"isKeyRollRequested"`
	ExtendRequestedAt         *time.Time `db:"extendRequestedAt"`
	PublicKeyPrint            string     `db:"publicKeyPrint"`
	LastAuthResolvedToRoot    bool       `db:"lastAuthResolvedToRoot"`
	LastExtendRolledKeys      bool       `db:"lastExtendRolledKeys"`
}

// Enrollment is an invitation. It has no times of its own but these.
type Enrollment struct {
	Common
	Method          string    `db:"method"`
	Token           string    `db:"token"`
	JWT             string    `db:"jwt"`
	IdentityID      string    `db:"identity"`
	EdgeRouterID    string    `db:"edgeRouter"`
	TransitRouterID string    `db:"transitRouter"`
	CAID            string    `db:"caId"`
	Username        string    `db:"username"`
	ExpiresAt       time.Time `db:"expiresAt"`
	IssuedAt        time.Time `db:"issuedAt"`
}

// MFA is a second factor, in plain text.
type MFA struct {
	Common
	IdentityID    string   `db:"identity"`
	IsVerified    bool     `db:"isVerified"`
	Secret        string   `db:"secret"`
	RecoveryCodes []string `db:"recoveryCodes"`
	Salt          string   `db:"salt"`
}

// AuthPolicy says how identities may authenticate. What it does not say of who may is
// that they may.
type AuthPolicy struct {
	Common
	Name              string   `db:"name"`
	CertAllowed       *bool    `db:"primary.cert.allowed"`
	AllowExpiredCerts bool     `db:"primary.cert.allowExpiredCerts"`
	UpdbAllowed       *bool    `db:"primary.updb.allowed"`
	MinPasswordLength int64    `db:"primary.updb.minPasswordLength"`
	RequireSpecial    bool     `db:"primary.updb.requireSpecialChar"`
	RequireNumber     bool     `db:"primary.updb.requireNumberChar"`
	RequireMixedCase  bool     `db:"primary.updb.requireMixedCase"`
	MaxAttempts       int64    `db:"primary.updb.maxAttempts"`
	LockoutMinutes    int64    `db:"primary.updb.lockoutDurationMinutes"`
	ExtJWTAllowed     *bool    `db:"primary.extJwt.allowed"`
	AllowedSigners    []string `db:"primary.extJwt.allowedSigners"`
	RequireTOTP       bool     `db:"secondary.requireTotp"`
	RequireExtJWT     *string  `db:"secondary.requireExtJwtSigner"`

	_ struct{} `derived:"identities"`
}

// ExtJWTSigner is somebody whose tokens are believed.
type ExtJWTSigner struct {
	Common
	Name                 string     `db:"name"`
	Issuer               string     `db:"issuer"`
	Audience             string     `db:"audience"`
	CertPEM              string     `db:"certPem"`
	JWKSEndpoint         string     `db:"jwksEndpoint"`
	KeyID                string     `db:"kid"`
	Fingerprint          string     `db:"fingerprint"`
	ExternalAuthURL      string     `db:"externalAuthUrl"`
	ClientID             string     `db:"clientId"`
	ClaimsProperty       string     `db:"claimsProperty"`
	UseExternalID        bool       `db:"useExternalId"`
	Enabled              bool       `db:"enabled"`
	Scopes               []string   `db:"scopes"`
	TargetToken          string     `db:"targetToken"`
	CommonName           string     `db:"commonName"`
	NotBefore            *time.Time `db:"notBefore"`
	NotAfter             *time.Time `db:"notAfter"`
	EnrollToCert         bool       `db:"enrollToCertEnabled"`
	EnrollToToken        bool       `db:"enrollToTokenEnabled"`
	EnrollAttributeClaim string     `db:"enrollAttributeClaimsSelector"`
	EnrollNameClaim      string     `db:"enrollNameClaimsSelector"`
	EnrollAuthPolicyID   string     `db:"enrollAuthPolicyId"`

	_ struct{} `derived:"authPolicies enrollAuthPolicies"`
}

// CA is a certificate authority of somebody else.
type CA struct {
	Common
	Name                      string   `db:"name"`
	Fingerprint               string   `db:"fingerprint"`
	CertPEM                   string   `db:"certPem"`
	VerificationToken         string   `db:"verificationToken"`
	IdentityNameFormat        string   `db:"identityNameFormat"`
	IsVerified                bool     `db:"isVerified"`
	IsAuthEnabled             bool     `db:"isAuthEnabled"`
	IsAutoCAEnrollmentEnabled bool     `db:"isAutoCaEnrollmentEnabled"`
	IsOTTCAEnrollmentEnabled  bool     `db:"isOttCaEnrollmentEnabled"`
	IdentityRoles             []string `db:"identityRoles"`
	ExternalIDClaim           *Claim   `db:"externalIdClaim"`

	_ struct{} `derived:"enrollments"`
}

// Claim is where a certificate of a CA says who has it.
type Claim struct {
	Location        string `db:"externalIdClaim.location"`
	Matcher         string `db:"externalIdClaim.matcher"`
	MatcherCriteria string `db:"externalIdClaim.matcherCriteria"`
	Parser          string `db:"externalIdClaim.parser"`
	ParserCriteria  string `db:"externalIdClaim.parserSeparator"`
	Index           int64  `db:"externalIdClaim.index"`
}

// ConfigType is a sort of configs, with a schema in JSON.
type ConfigType struct {
	Common
	Name   string  `db:"name"`
	Schema *string `db:"schema"`

	_ struct{} `derived:"configs"`
}

// Config is what a service says to tunnelers.
type Config struct {
	Common
	Name   string         `db:"name"`
	TypeID string         `db:"type"`
	Data   map[string]any `db:"data"`

	_ struct{} `derived:"services identityServices"`
}

// Service is one of the fabric, and of the edge if it has that part.
type Service struct {
	Common
	Name               string        `db:"name"`
	TerminatorStrategy string        `db:"terminatorStrategy"`
	MaxIdle            time.Duration `db:"maxIdleTime"`
	Edge               *EdgeService  `db:"edge"`

	_ struct{} `derived:"terminators"`
}

// EdgeService is the part of a service that identities see.
type EdgeService struct {
	RoleAttributes     []string `db:"roleAttributes"`
	Configs            []string `db:"configs"`
	EncryptionRequired *bool    `db:"encryptionRequired"`

	_ struct{} `derived:"name dialIdentities bindIdentities edgeRouters servicePolicies serviceEdgeRouterPolicies identityServices"`
}

// Router is an edge router, a transit router, or one of the fabric alone.
type Router struct {
	Common
	Name              string         `db:"name"`
	Fingerprint       *string        `db:"fingerprint"`
	Cost              int32          `db:"cost"`
	NoTraversal       bool           `db:"noTraversal"`
	Disabled          bool           `db:"disabled"`
	Interfaces        map[string]any `db:"interfaces"`
	CtrlChanListeners map[string]any `db:"ctrlChanListeners"`
	Edge              *EdgeRouter    `db:"edge"`
	Transit           *TransitRouter `db:"transitRouter"`

	_ struct{} `derived:"terminators"`
}

// EdgeRouter is the part of a router that identities connect to.
type EdgeRouter struct {
	CertPEM               *string        `db:"certPem"`
	IsVerified            bool           `db:"isVerified"`
	IsTunnelerEnabled     bool           `db:"isTunnelerEnabled"`
	RoleAttributes        []string       `db:"roleAttributes"`
	AppData               map[string]any `db:"appData"`
	UnverifiedCertPEM     *string        `db:"unverifiedCertPem"`
	UnverifiedFingerprint *string        `db:"unverifiedFingerprint"`

	_ struct{} `derived:"name fingerprint enrollments identities services edgeRouterPolicies serviceEdgeRouterPolicies"`
}

// TransitRouter is the part of a router that only carries.
type TransitRouter struct {
	IsVerified            bool    `db:"isVerified"`
	UnverifiedCertPEM     *string `db:"unverifiedCertPem"`
	UnverifiedFingerprint *string `db:"unverifiedFingerprint"`

	_ struct{} `derived:"name enrollments"`
}

// Terminator is where a service is reached.
type Terminator struct {
	Common
	ServiceID       string            `db:"service"`
	RouterID        string            `db:"router"`
	Binding         string            `db:"binding"`
	Address         string            `db:"address"`
	InstanceID      string            `db:"instanceId"`
	InstanceSecret  []byte            `db:"instanceSecret"`
	Precedence      string            `db:"precedence"`
	SavedPrecedence *string           `db:"savedPrecedence"`
	HostID          string            `db:"hostId"`
	SourceCtrl      string            `db:"sourceCtrl"`
	Cost            int32             `db:"cost"`
	PeerData        map[string][]byte `db:"peerData"`
}

// What the type of a service policy is.
const (
	Dial = 1
	Bind = 2
)

// ServicePolicy says who may dial or host what.
type ServicePolicy struct {
	Common
	Name              string   `db:"name"`
	Semantic          string   `db:"semantic"`
	Type              int32    `db:"type"`
	IdentityRoles     []string `db:"identityRoles"`
	ServiceRoles      []string `db:"serviceRoles"`
	PostureCheckRoles []string `db:"postureCheckRoles"`

	_ struct{} `derived:"identities services postureChecks"`
}

// EdgeRouterPolicy says who may use which edge routers.
type EdgeRouterPolicy struct {
	Common
	Name            string   `db:"name"`
	Semantic        string   `db:"semantic"`
	IdentityRoles   []string `db:"identityRoles"`
	EdgeRouterRoles []string `db:"edgeRouterRoles"`

	_ struct{} `derived:"identities routers edgeRouters"`
}

// ServiceEdgeRouterPolicy says through which edge routers services go.
type ServiceEdgeRouterPolicy struct {
	Common
	Name            string   `db:"name"`
	Semantic        string   `db:"semantic"`
	ServiceRoles    []string `db:"serviceRoles"`
	EdgeRouterRoles []string `db:"edgeRouterRoles"`

	_ struct{} `derived:"services routers edgeRouters"`
}

// PostureCheck is what devices have to show, of one type.
type PostureCheck struct {
	Common
	Name           string             `db:"name"`
	TypeID         string             `db:"typeId"`
	Version        int64              `db:"version"`
	RoleAttributes []string           `db:"roleAttributes"`
	MAC            *MACCheck          `db:"MAC"`
	Domain         *DomainCheck       `db:"DOMAIN"`
	OS             map[string]OSCheck `db:"OS"`
	Process        *ProcessCheck      `db:"PROCESS"`
	ProcessMulti   *ProcessMultiCheck `db:"PROCESS_MULTI"`
	MFA            *MFACheck          `db:"MFA"`

	_ struct{} `derived:"servicePolicies bindServices dialServices"`
}

// MACCheck wants one of these hardware addresses.
type MACCheck struct {
	Addresses []string `db:"macAddresses"`
}

// DomainCheck wants one of these domains.
type DomainCheck struct {
	Domains []string `db:"domains"`
}

// OSCheck wants an operating system, and one of its versions.
type OSCheck struct {
	Type     string   `db:"osType"`
	Versions []string `db:"osVersions"`
}

// ProcessCheck wants a process.
type ProcessCheck struct {
	OS          string   `db:"os"`
	Path        string   `db:"path"`
	Fingerprint string   `db:"fingerprint"`
	Hashes      []string `db:"hashes"`
}

// ProcessMultiCheck wants one or all of several processes.
type ProcessMultiCheck struct {
	Semantic  string             `db:"semantic"`
	Processes map[string]Process `db:"processes"`
}

// Process is one of several.
type Process struct {
	OSType             string   `db:"osType"`
	Path               string   `db:"path"`
	Hashes             []string `db:"hashes"`
	SignerFingerprints []string `db:"signerFingerprints"`
}

// MFACheck wants a second factor, again after some time.
type MFACheck struct {
	TimeoutSeconds        int64 `db:"timeoutSeconds"`
	PromptOnWake          bool  `db:"promptOnWake"`
	PromptOnUnlock        bool  `db:"promptOnUnlock"`
	IgnoreLegacyEndpoints bool  `db:"ignoreLegacyEndpoints"`
}

// Controller is one of several.
type Controller struct {
	Common
	Name        string `db:"name"`
	CtrlAddress string `db:"ctrlAddress"`
	CertPEM     string `db:"certPem"`
	Fingerprint string `db:"fingerprint"`

	_ struct{} `derived:"isOnline lastJoinedAt isPreferredLeader apiAddresses"`
}

// APISession is a login that goes on.
type APISession struct {
	Common
	IdentityID      string    `db:"identity"`
	Token           string    `db:"token"`
	ConfigTypes     []string  `db:"configTypes"`
	IPAddress       string    `db:"ipAddress"`
	MFAComplete     bool      `db:"mfaComplete"`
	MFARequired     bool      `db:"mfaRequired"`
	LastActivityAt  time.Time `db:"lastActivityAt"`
	AuthenticatorID string    `db:"authenticator"`

	_ struct{} `derived:"sessions apiSessionCertificates isCertExtendable improperClientCertChain"`
}

// SessionCertificate is a certificate that ends with its API session.
type SessionCertificate struct {
	Common
	APISessionID string     `db:"apiSession"`
	Subject      string     `db:"subject"`
	Fingerprint  string     `db:"fingerprint"`
	ValidAfter   *time.Time `db:"validAfter"`
	ValidBefore  *time.Time `db:"validBefore"`
	PEM          string     `db:"pem"`
}

// Session is a permission of an API session to dial or host a service.
type Session struct {
	Common
	Token        string `db:"token"`
	APISessionID string `db:"apiSession"`
	ServiceID    string `db:"service"`
	IdentityID   string `db:"identity"`
	Type         string `db:"type"`

	_ struct{} `derived:"servicePolicies"`
}
