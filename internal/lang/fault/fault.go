// Package fault is the vocabulary of errors: what went wrong, in which field
// and why. Domain code returns these words; only package rest turns them into
// HTTP statuses and bodies. It imports nothing of ours.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Code names a failure in a form that clients may compare.
type Code string

// The codes that clients of the API know. Their texts are part of the
// contract.
const (
	CodeInvalid      Code = "COULD_NOT_VALIDATE"
	CodeBody         Code = "COULD_NOT_PARSE_BODY"
	CodeBodyTooLarge Code = "BODY_TOO_LARGE"
	CodeBodyTooSlow  Code = "BODY_TOO_SLOW"
	CodeFilter       Code = "INVALID_FILTER"
	CodeSort         Code = "INVALID_SORT_IDENTIFIER"
	CodePagination   Code = "INVALID_PAGINATION"
	CodeAuth         Code = "INVALID_AUTH"
	CodeUnauthorized Code = "UNAUTHORIZED"
	CodeNotFound     Code = "NOT_FOUND"
	CodeMethod       Code = "METHOD_NOT_ALLOWED"
	CodeContentType  Code = "INVALID_CONTENT_TYPE"
	CodeReferenced   Code = "CAN_NOT_DELETE_REFERENCED_ENTITY"
	CodeUndeletable  Code = "ENTITY_CAN_NOT_BE_DELETED"
	CodeUnchangeable Code = "ENTITY_CAN_NOT_BE_UPDATED"
	CodeRateLimited  Code = "RATE_LIMITED"
	CodeTimeout      Code = "TIMEOUT"
	CodeUnavailable  Code = "UNAVAILABLE"
	CodeTooLarge     Code = "CHANGE_TOO_LARGE"
	CodeUnhandled    Code = "UNHANDLED"
	CodePlan         Code = "PLAN_OUTDATED"
	CodeSnapshot     Code = "SNAPSHOT_REFUSED"
	CodeCluster      Code = "CLUSTER_REFUSED"
	CodeAssertion    Code = "ASSERTION_BROKEN"

	CodeCSR     Code = "COULD_NOT_PROCESS_CSR"
	CodePEM     Code = "COULD_NOT_PARSE_PEM_BLOCK"
	CodePEMType Code = "EXPECTED_PEM_CERTIFICATE"
	CodeDER     Code = "COULD_NOT_PARSE_DER_BLOCK"
	CodeChain   Code = "CERT_FAILED_VALIDATION"
	CodeCertPEM Code = "INVALID_CERT_PEM"

	CodeReference     Code = "REFERENCED_ENTITY_NOT_FOUND"
	CodeForeignRouter Code = "CAN_NOT_UPDATE_ROUTER"
	CodeEnrollment    Code = "ENROLLMENT_EXISTS"
	CodeMethodTaken   Code = "MAX_AUTHENTICATOR_METHODS_REACHED"
	CodeAuthenticator Code = "CAN_NOT_UPDATE_AUTHENTICATOR"
	CodeCertificates  Code = "MAX_SESSION_CERTIFICATES_REACHED"

	CodeEnrollToken   Code = "INVALID_ENROLLMENT_TOKEN"
	CodeEnrollMethod  Code = "INVALID_ENROLL_METHOD"
	CodeEnrollExpired Code = "ENROLLMENT_EXPIRED"
	CodeEnrollCA      Code = "ENROLLMENT_CA_NOT_VALID"
	CodeEnrollNoCA    Code = "ENROLLMENT_NO_VALID_CAS"
	CodeEnrollDenied  Code = "INVALID_ENROLLMENT_NOT_ALLOWED"
	CodeEnrolled      Code = "ENROLLMENT_IDENTITY_ALREADY_ENROLLED"
	CodeMissingCSR    Code = "MISSING_OR_INVALID_CSR"
	CodeCertInUse     Code = "CERT_IN_USE"
	CodeUsername      Code = "USERNAME_TAKEN"
	CodeCertClaim     Code = "MISSING_CERT_CLAIM"
	CodeClientCert    Code = "INVALID_CLIENT_CERT"
	CodeCAVerified    Code = "CA_ALREADY_VERIFIED"
	CodeCommonName    Code = "INVALID_COMMON_NAME"
	CodeCAProof       Code = "CERTIFICATE_FAILED_VALIDATION"

	CodeMFAExists  Code = "MFA_EXISTS"
	CodeMFAMissing Code = "MFA_NOT_ENROLLED"
	CodeMFACode    Code = "MFA_INVALID_TOKEN"

	CodeNoRouters Code = "NO_EDGE_ROUTERS_AVAILABLE"
	CodePosture   Code = "INVALID_POSTURE"
)

// Error is a failure with what a caller needs to mend it. Value holds the
// offending value and is never a secret.
type Error struct {
	Code   Code
	Field  string // dotted path of the body field, parameter or header
	Reason string
	Value  any
	Cause  error // for the log and, where it names no secret, for the caller
	// Wait is how long to wait before another try, of failures that pass by
	// themselves; nobody knows if 0.
	Wait time.Duration
}

func (e *Error) Error() string {
	switch {
	case e.Field != "":
		return fmt.Sprintf("%s %s", e.Field, e.Reason)
	case e.Cause != nil && e.Reason != "":
		return e.Reason + ": " + e.Cause.Error()
	case e.Cause != nil:
		return e.Cause.Error()
	case e.Reason != "":
		return e.Reason
	}
	return string(e.Code)
}

func (e *Error) Unwrap() error { return e.Cause }

// New returns a failure that concerns no single field.
func New(code Code, reason string) *Error {
	return &Error{Code: code, Reason: reason}
}

// On returns a failure of one field.
func On(code Code, field, reason string, value any) *Error {
	return &Error{Code: code, Field: field, Reason: reason, Value: value}
}

// Invalid says that a field's value is not acceptable.
func Invalid(field, reason string, value any) *Error {
	return On(CodeInvalid, field, reason, value)
}

// NotFound says that no record of the kind has this id.
func NotFound(kind, id string) *Error {
	return &Error{Code: CodeNotFound, Reason: fmt.Sprintf("no %s with id %q", kind, id)}
}

// Later says that the caller has to wait before it may try again.
func Later(reason string, wait time.Duration) *Error {
	return &Error{Code: CodeRateLimited, Reason: reason, Wait: wait}
}

// Wrap gives an error a code and keeps it as the cause.
func Wrap(code Code, err error) *Error {
	return &Error{Code: code, Cause: err}
}

// CodeOf returns the code of the first Error in err's chain, and
// CodeUnhandled when there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeUnhandled
}

// Is reports whether err carries the code.
func Is(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
