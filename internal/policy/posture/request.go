package posture

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// FailedRequest is a request for a service that the checks of every policy
// refused, or would have if none of them only told.
type FailedRequest struct {
	When                   time.Time
	APISessionID           string
	ServiceID, ServiceName string
	SessionType            string
	// ReportedOnly says that it was not refused.
	ReportedOnly   bool
	PolicyFailures []PolicyFailure
}

// Each tells of every check that failed once, however many policies have it.
func (r *FailedRequest) Each(tell func(typ, mode string)) {
	seen := map[string]bool{}
	for _, p := range r.PolicyFailures {
		for _, c := range p.Checks {
			if check, typ := c.check(); !seen[check.ID] {
				seen[check.ID] = true
				tell(typ, cmp.Or(check.Mode, model.Enforce))
			}
		}
	}
}

// same reports whether a request repeats another.
func (r *FailedRequest) same(other *FailedRequest) bool {
	return r.APISessionID == other.APISessionID && r.ServiceID == other.ServiceID && r.SessionType == other.SessionType
}

// Append adds the JSON of the request.
func (r FailedRequest) Append(dst []byte) []byte {
	dst = append(dst, `{"when":`...)
	dst = kind.AppendTime(dst, r.When)
	for _, m := range [...]struct{ name, value string }{
		{"apiSessionId", r.APISessionID}, {"serviceId", r.ServiceID}, {"serviceName", r.ServiceName}, {"sessionType", r.SessionType},
	} {
		dst = kind.AppendMember(dst, m.name, func(dst []byte) []byte { return kind.AppendText(dst, m.value) })
	}
	if r.ReportedOnly {
		dst = append(dst, `,"reportedOnly":true`...)
	}
	dst = append(dst, `,"policyFailures":[`...)
	for i, p := range r.PolicyFailures {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.append(dst)
	}
	return append(dst, `]}`...)
}

func (p PolicyFailure) append(dst []byte) []byte {
	dst = append(dst, `{"policyId":`...)
	dst = kind.AppendText(dst, p.PolicyID)
	dst = append(dst, `,"policyName":`...)
	dst = kind.AppendText(dst, p.PolicyName)
	dst = append(dst, `,"checks":[`...)
	for i, c := range p.Checks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = c.append(dst)
	}
	return append(dst, `]}`...)
}

// FailedRequestSchema describes what FailedRequest.Append adds.
func FailedRequestSchema() kind.Schema {
	text := kind.Schema{"type": "string"}
	policy := kind.Schema{
		"type":     "object",
		"required": []string{"checks", "policyId", "policyName"},
		"properties": kind.Schema{
			"policyId":   kind.Described(text, "Id of the service policy."),
			"policyName": kind.Described(text, "What people call the service policy."),
			"checks":     kind.Described(kind.ListOf(failureSchema()), "The checks of the policy that the device failed."),
		},
	}
	return kind.Schema{
		"type":     "object",
		"required": []string{"apiSessionId", "policyFailures", "serviceId", "serviceName", "sessionType", "when"},
		"properties": kind.Schema{
			"when":         kind.Described(kind.Schema{"type": "string", "format": "date-time"}, "When it was made."),
			"apiSessionId": kind.Described(text, "Id of the API session that asked."),
			"serviceId":    kind.Described(text, "Id of the service that it asked for."),
			"serviceName":  kind.Described(text, "What people call the service."),
			"sessionType": kind.Described(kind.Schema{"type": "string", "enum": []string{"Dial", "Bind"}},
				"What it asked for: Dial is to use the service, Bind to host it."),
			"reportedOnly": kind.Described(kind.Schema{"type": "boolean"},
				"Whether it was granted, and would have been refused if every check were enforced. Of one session and service only the last is kept. Left out if it was refused."),
			"policyFailures": kind.Described(kind.ListOf(policy), "The policies that give the service, each with what stood against it."),
		},
	}
}

// How many failed requests are kept: of an identity, in all, and of how many
// failures of checks they may consist. The oldest go first.
const (
	maxOfIdentity = 100
	maxRequests   = 20_000
	maxFailures   = 200_000
)

// Failures is the last failed requests. It is safe for concurrent use, and its
// zero value is ready.
type Failures struct {
	mu    sync.Mutex
	order list.List                  // of *kept, the oldest first
	of    map[string][]*list.Element // by identity, the oldest first
	size  int                        // failures of checks in all
}

// kept is a request that failed.
type kept struct {
	identityID string
	request    FailedRequest
	size       int
}

// Add keeps a failed request, which must not change any more. One that was only
// told takes the place of the one before it: clients that nobody refuses ask again and
// again, and what was refused is not to be forgotten for them.
func (f *Failures) Add(identityID string, r FailedRequest) {
	k := &kept{identityID, r, 0}
	for _, p := range r.PolicyFailures {
		k.size += 1 + len(p.Checks)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string][]*list.Element{}
	}
	if r.ReportedOnly {
		f.dropTold(identityID, &r)
	}
	f.of[identityID] = append(f.of[identityID], f.order.PushBack(k))
	f.size += k.size
	if len(f.of[identityID]) > maxOfIdentity {
		f.dropFirst(identityID)
	}
	for f.order.Len() > maxRequests || f.size > maxFailures && f.order.Len() > 1 {
		f.dropFirst(f.order.Front().Value.(*kept).identityID)
	}
}

// dropTold drops what was told of the same request before.
func (f *Failures) dropTold(identityID string, r *FailedRequest) {
	f.of[identityID] = slices.DeleteFunc(f.of[identityID], func(el *list.Element) bool {
		told := &el.Value.(*kept).request
		if !told.ReportedOnly || !told.same(r) {
			return false
		}
		f.remove(el)
		return true
	})
}

// dropFirst drops the oldest request of an identity.
func (f *Failures) dropFirst(identityID string) {
	requests := f.of[identityID]
	f.remove(requests[0])
	if requests = slices.Delete(requests, 0, 1); len(requests) > 0 {
		f.of[identityID] = requests
	} else {
		delete(f.of, identityID)
	}
}

func (f *Failures) remove(el *list.Element) { f.size -= f.order.Remove(el).(*kept).size }

// Of returns the failed requests of an identity, the newest first.
func (f *Failures) Of(identityID string) []FailedRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []FailedRequest
	for _, el := range slices.Backward(f.of[identityID]) {
		all = append(all, el.Value.(*kept).request)
	}
	return all
}

// Keep drops the requests of the identities that keep does not want.
func (f *Failures) Keep(keep func(identityID string) bool) {
	for _, id := range f.identities() {
		if !keep(id) {
			f.drop(id)
		}
	}
}

// identities lists who has failed requests.
func (f *Failures) identities() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := make([]string, 0, len(f.of))
	for id := range f.of {
		ids = append(ids, id)
	}
	return ids
}

// drop drops all requests of an identity.
func (f *Failures) drop(identityID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, el := range f.of[identityID] {
		f.remove(el)
	}
	delete(f.of, identityID)
}
