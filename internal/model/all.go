// Package model is the network's kinds, one file each, and the rules that
// need only records. Of ours it imports lang and pki, and must not import state:
// it sees the write in progress through kind.Reader and kind.Writer.
package model

import "netkeep.internal/internal/lang/kind"

// All is every kind, in the order in which references between them are best
// read.
var All = kind.NewCatalog(
	CAs.Def,
	ExtJWTSigners.Def,
	AuthPolicies.Def,
	AdminRoles.Def,
	IdentityTypes.Def,
	Identities.Def,
	Authenticators.Def,
	MFAs.Def,
	Enrollments.Def,
	RoleBindings.Def,
	Tokens.Def,
	ConfigTypes.Def,
	Configs.Def,
	Services.Def,
	ServiceConfigs.Def,
	Routers.Def,
	EdgeRouters.Def,
	ControllerNames.Def,
	Controllers.Def,
	Receipts.Def,
	Terminators.Def,
	PostureCheckTypes.Def,
	PostureChecks.Def,
	ServicePolicies.Def,
	EdgeRouterPolicies.Def,
	ServiceEdgeRouterPolicies.Def,
	Assertions.Def,
	Grants.Def,
	AccessRequests.Def,
	ClientInfos.Def,
	TokenUses.Def,
	APISessions.Def,
	SessionCertificates.Def,
	Devices.Def,
	Sessions.Def,
	Presences.Def,
	Links.Def,
	Circuits.Def,
	AuditEntries.Def,
	AuditBlocks.Def,
	AuditChains.Def,
	AuditOutlets.Def,
	AlertStates.Def,
	AlertReceivers.Def,
)
