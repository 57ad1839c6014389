package management

import (
	"math"
	"net/http"

	"netkeep.internal/internal/model"
	"netkeep.internal/internal/ops/audit"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// auditOut is what there is to say of the audit log as a whole.
type auditOut struct {
	Intact  bool      `json:"intact" doc:"Whether every entry is there, as it was written and in its place."`
	First   int64     `json:"first" doc:"Number of the first entry that is kept."`
	Last    int64     `json:"last" doc:"Number of the last entry; 0 if there is none."`
	Digest  string    `json:"digest" doc:"SHA-256 of the last entry, in base64; who notes it elsewhere can tell later that nothing before it was written anew."`
	Entries int64     `json:"entries" doc:"How many entries were read."`
	Flaws   []flawOut `json:"flaws" doc:"What is not as it was written; empty if all is well."`
	More    bool      `json:"more" doc:"Whether there are more flaws than are listed."`
	Next    int64     `json:"next" doc:"Number of the entry to go on from, in a request with from; 0 if the log was read to its end."`
	Follows string    `json:"follows" doc:"Digest of the entry before next, for the parameter follows of the next request; empty without one."`
}

type flawOut struct {
	First int64  `json:"first" doc:"Number of the first entry that this is about."`
	Last  int64  `json:"last" doc:"Number of the last entry that this is about."`
	What  string `json:"what" doc:"What is wrong with them: missing, not readable, not as written, or not filed as written, so that filters pass over them."`
}

var (
	partParam    = rest.NumberParam("from", "Number of the first entry to read, 1 for the beginning: the answer is about as many entries from there on as are read in a few seconds, and next in it says where to go on. If not given, all of them are read, for at most 110 seconds.")
	followsParam = rest.TextParam("follows", "Digest of the entry before from, which that one has to follow; if not given, what it follows is not looked at.")
)

// mountAudit offers to check the audit log.
func mountAudit(a *rest.API, s *api.Service) {
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/audit-verification", Name: "verifyAuditEntries", Tag: model.AuditEntries.Path,
		Doc: "Read the whole audit log, or a part of it, and tell which entries are missing, or are not as they were written.", Auth: rest.Admin, Need: "audit-entry:verify", Long: true,
		Params: []rest.Parameter{partParam, followsParam},
	}, func(c *rest.Call, _ rest.None) (auditOut, error) {
		at, most := audit.Place{Follows: followsParam.Of(c)}, int64(math.MaxInt64)
		if from := partParam.Of(c); from != nil {
			at.Next, most = *from, audit.APart
		}
		v, next, err := s.Audit.VerifyPart(c.Context(), at, most)
		if err != nil {
			return auditOut{}, err
		}
		out := auditOut{
			Intact: len(v.Flaws) == 0, First: v.First, Last: v.Last, Digest: v.Digest, Entries: v.Found, Flaws: []flawOut{}, More: v.More,
			Next: next.Next, Follows: next.Follows,
		}
		for _, f := range v.Flaws {
			out.Flaws = append(out.Flaws, flawOut{f.From, f.To, f.What})
		}
		return out, nil
	})
}
