package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// answers is what becomes of a failure: its HTTP status, and a sentence that says
// what the code means where the reason does not.
var answers = map[fault.Code]struct {
	status int
	says   string
}{
	fault.CodeInvalid:       {http.StatusBadRequest, "a value in the request is not acceptable"},
	fault.CodeBody:          {http.StatusBadRequest, "the request body cannot be read"},
	fault.CodeBodyTooLarge:  {http.StatusRequestEntityTooLarge, ""},
	fault.CodeBodyTooSlow:   {http.StatusRequestTimeout, ""},
	fault.CodeFilter:        {http.StatusBadRequest, "the filter is not acceptable"},
	fault.CodeSort:          {http.StatusBadRequest, "the sort parameter is not acceptable"},
	fault.CodePagination:    {http.StatusBadRequest, ""},
	fault.CodeAuth:          {http.StatusUnauthorized, "the authentication failed"},
	fault.CodeUnauthorized:  {http.StatusUnauthorized, "this needs a session with more rights; authenticate first"},
	fault.CodeNotFound:      {http.StatusNotFound, "there is no such thing"},
	fault.CodeMethod:        {http.StatusMethodNotAllowed, ""},
	fault.CodeContentType:   {http.StatusBadRequest, ""},
	fault.CodeReferenced:    {http.StatusConflict, "it is still in use"},
	fault.CodeUndeletable:   {http.StatusBadRequest, ""},
	fault.CodeUnchangeable:  {http.StatusBadRequest, ""},
	fault.CodeRateLimited:   {http.StatusTooManyRequests, ""},
	fault.CodeTimeout:       {http.StatusServiceUnavailable, "the request took too long"},
	fault.CodeUnavailable:   {http.StatusServiceUnavailable, ""},
	fault.CodeTooLarge:      {http.StatusBadRequest, ""},
	fault.CodePlan:          {http.StatusConflict, ""},
	fault.CodeSnapshot:      {http.StatusConflict, ""},
	fault.CodeCluster:       {http.StatusConflict, ""},
	fault.CodeAssertion:     {http.StatusConflict, "the change would break an assertion; override it if that is meant"},
	fault.CodeCSR:           {http.StatusBadRequest, ""},
	fault.CodePEM:           {http.StatusBadRequest, ""},
	fault.CodePEMType:       {http.StatusBadRequest, ""},
	fault.CodeDER:           {http.StatusBadRequest, ""},
	fault.CodeChain:         {http.StatusBadRequest, ""},
	fault.CodeCertPEM:       {http.StatusBadRequest, ""},
	fault.CodeReference:     {http.StatusBadRequest, ""},
	fault.CodeForeignRouter: {http.StatusConflict, ""},
	fault.CodeEnrollment:    {http.StatusConflict, ""},
	fault.CodeMethodTaken:   {http.StatusConflict, ""},
	fault.CodeEnrollToken:   {http.StatusBadRequest, ""},
	fault.CodeEnrollMethod:  {http.StatusBadRequest, ""},
	fault.CodeEnrollExpired: {http.StatusBadRequest, ""},
	fault.CodeEnrollCA:      {http.StatusBadRequest, ""},
	fault.CodeEnrollNoCA:    {http.StatusBadRequest, ""},
	fault.CodeEnrollDenied:  {http.StatusConflict, ""},
	fault.CodeEnrolled:      {http.StatusConflict, ""},
	fault.CodeMissingCSR:    {http.StatusBadRequest, ""},
	fault.CodeCertInUse:     {http.StatusConflict, ""},
	fault.CodeUsername:      {http.StatusConflict, ""},
	fault.CodeCertClaim:     {http.StatusBadRequest, ""},
	fault.CodeClientCert:    {http.StatusBadRequest, ""},
	fault.CodeCAVerified:    {http.StatusConflict, ""},
	fault.CodeCommonName:    {http.StatusBadRequest, ""},
	fault.CodeCAProof:       {http.StatusBadRequest, ""},
	fault.CodeMFAExists:     {http.StatusConflict, ""},
	fault.CodeMFAMissing:    {http.StatusConflict, ""},
	fault.CodeMFACode:       {http.StatusBadRequest, ""},
	fault.CodeAuthenticator: {http.StatusConflict, ""},
	fault.CodeCertificates:  {http.StatusConflict, ""},
	fault.CodeNoRouters:     {http.StatusBadRequest, ""},
	fault.CodePosture:       {http.StatusConflict, ""},
	fault.CodeUnhandled:     {http.StatusInternalServerError, "something went wrong on our side; the log has the details under this request id"},
}

// fail answers with an error. What is not ours to explain is logged under the
// request's id and answered as internal, without a word of it.
func (c *Call) fail(err error) {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
	case errors.Is(err, context.DeadlineExceeded):
		f = fault.New(fault.CodeTimeout, "")
	case errors.Is(err, context.Canceled):
		f = fault.New(fault.CodeTimeout, "the client left")
	default:
		c.Log().Error("request failed", "error", err)
		f = fault.New(fault.CodeUnhandled, "")
	}
	status := cmp.Or(answers[f.Code].status, http.StatusInternalServerError)
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		seconds := max(1, int64(math.Ceil(f.Wait.Seconds())))
		c.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	if f.Code == fault.CodeUnavailable && f.Cause != nil {
		c.Log().Error("request could not be served", "error", f.Cause)
	}
	_ = c.build(status, func(dst []byte) []byte { return appendError(dst, f, c.ID) })
}

func appendError(dst []byte, f *fault.Error, requestID string) []byte {
	message := answers[f.Code].says
	// Who lacks a power is known already: to authenticate again would not help.
	if message == "" || (f.Field == "" || f.Code == fault.CodeUnauthorized) && f.Reason != "" {
		message = f.Reason
	}
	dst = append(dst, `{"error":{"code":`...)
	dst = kind.AppendText(dst, string(f.Code))
	dst = append(dst, `,"message":`...)
	dst = kind.AppendText(dst, message)
	dst = append(dst, `,"requestId":`...)
	dst = kind.AppendText(dst, requestID)
	dst = appendCause(dst, f)
	return append(dst, `},"meta":{"apiEnrollmentVersion":"0.0.1","apiVersion":"0.0.1"}}`...)
}

// appendCause adds what exactly is wrong: a field and its value, or another
// failure behind this one.
func appendCause(dst []byte, f *fault.Error) []byte {
	switch {
	case f.Field != "":
		dst = append(dst, `,"cause":{"field":`...)
		dst = kind.AppendText(dst, f.Field)
		dst = append(dst, `,"reason":`...)
		dst = kind.AppendText(dst, f.Reason)
		dst = append(dst, `,"value":`...)
		dst = kind.AppendText(dst, shorten(fmt.Sprint(f.Value)))
	case f.Code == fault.CodeUnavailable:
		return dst
	case f.Cause != nil || f.Reason != "":
		dst = append(dst, `,"cause":{"code":`...)
		dst = kind.AppendText(dst, string(f.Code))
		dst = append(dst, `,"message":`...)
		dst = kind.AppendText(dst, f.Error())
	default:
		return dst
	}
	return append(dst, '}')
}

// shorten keeps an error from repeating a whole body.
func shorten(s string) string {
	const most = 256
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
