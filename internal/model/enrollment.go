package model

import (
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/lang/method"
)

// The ways to enroll.
const (
	MethodOTT   = method.OTT
	MethodOTTCA = method.OTTCA
	MethodErOTT = method.ErOTT
	MethodTrOTT = method.TrOTT
	MethodCA    = method.CA
)

// Enrollment lets whoever holds its token become an identity or router.
type Enrollment struct {
	kind.Meta

	Method          string    `json:"method" kind:"server,nofilter" doc:"How to enroll: ott with a certificate that the controller issues, ottca with one of a registered CA, updb with a password; erott and trott are for edge and other routers."`
	Token           string    `json:"token" kind:"server,unique,sealed" doc:"What makes its holder the identity or router; it works once."`
	JWT             string    `json:"jwt" kind:"server,omit,nofilter,sealed" doc:"The same token with the address of the controller, signed by it, to hand over to whoever enrolls."`
	ExpiresAt       time.Time `json:"expiresAt" kind:"server,nofilter" doc:"When the token ends."`
	IdentityID      string    `json:"identityId" kind:"server,omit,ref=identity:cascade,as=identity,alias=identity" doc:"Id of the identity that is to enroll; left out for routers."`
	EdgeRouterID    string    `json:"edgeRouterId" kind:"server,omit,ref=edge-router:cascade,as=edgeRouter,alias=edgeRouter" doc:"Id of the edge router that is to enroll; left out for everything else."`
	TransitRouterID string    `json:"transitRouterId" kind:"server,omit,ref=router:cascade,as=transitRouter,alias=transitRouter" doc:"Id of the router that is to enroll and is no edge router; left out for everything else."`
	CAID            string    `json:"caId" kind:"server,nullable,ref=ca:cascade" doc:"Id of the CA of which the method ottca wants a certificate; null for other methods."`
	Username        string    `json:"username" kind:"server,omit,nofilter,format=visible" doc:"User name that the method updb gives the identity; left out for other methods."`
}

// Enrollments is the kind.
var Enrollments = kind.Define(kind.Spec[Enrollment]{
	Name:    "enrollment",
	Path:    "enrollments",
	Doc:     "Create an enrollment: a token that makes its holder an identity.",
	Verbs:   kind.Lists | kind.Gets | kind.Creates | kind.Deletes,
	Columns: []string{"id", "method", "identity", "edgeRouter", "transitRouter", "expiresAt"},
})

// Subject is who the enrollment is for.
func (e *Enrollment) Subject() string {
	return e.IdentityID + e.EdgeRouterID + e.TransitRouterID
}

// Check allows one outstanding enrollment of a method for each subject.
func (e *Enrollment) Check(r kind.Reader, _ *Enrollment) error {
	if _, ok := Identities.Get(r, e.IdentityID); e.IdentityID != "" && !ok {
		return fault.On(fault.CodeReference, "identityId", "names no identity with this id", e.IdentityID)
	}
	if _, ok := CAs.Get(r, e.CAID); e.CAID != "" && !ok {
		return fault.On(fault.CodeReference, "caId", "names no CA with this id", e.CAID)
	}
	for other := range Enrollments.Select(r, "identityId", e.IdentityID) {
		if e.IdentityID != "" && other.ID != e.ID && other.Method == e.Method {
			return fault.On(fault.CodeEnrollment, "method", "is outstanding for this identity already; refresh or delete that enrollment", e.Method)
		}
	}
	return nil
}
