package oidc

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"netkeep.internal/internal/lang/fault"
)

// answer answers with JSON.
func answer(w http.ResponseWriter, status int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(data)
}

// statuses are what becomes of failures; those that are not here are ours.
var statuses = map[fault.Code]int{
	fault.CodeInvalid: http.StatusBadRequest, fault.CodeBody: http.StatusBadRequest, fault.CodeContentType: http.StatusUnsupportedMediaType,
	fault.CodeBodyTooLarge: http.StatusRequestEntityTooLarge, fault.CodeBodyTooSlow: http.StatusRequestTimeout,
	fault.CodeAuth: http.StatusUnauthorized, fault.CodeUnauthorized: http.StatusUnauthorized, fault.CodeNotFound: http.StatusNotFound,
	fault.CodeMethod: http.StatusMethodNotAllowed, fault.CodeRateLimited: http.StatusTooManyRequests, fault.CodeUnavailable: http.StatusServiceUnavailable,
	fault.CodeTimeout: http.StatusServiceUnavailable, fault.CodeMFACode: http.StatusBadRequest, fault.CodeMFAExists: http.StatusConflict,
	fault.CodeMFAMissing: http.StatusConflict,
}

// refuse answers with why a request was not heeded, in the shape of the other APIs.
func refuse(w http.ResponseWriter, err error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = fault.New(fault.CodeUnhandled, "something went wrong on our side")
	}
	status := statuses[f.Code]
	if status == 0 {
		status = http.StatusInternalServerError
	}
	if f.Wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.Wait.Seconds())+1))
	}
	says := f.Reason
	switch {
	case f.Code == fault.CodeAuth:
		says = "the authentication failed"
	case f.Field != "":
		says = f.Field + " " + says
	}
	answer(w, status, map[string]any{"error": map[string]any{"code": string(f.Code), "message": says, "status": status}})
}
