package audit

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Head says where the log begins and ends. It is shared.
func Head(r kind.Reader) *model.AuditChain {
	head, _ := headOf(r)
	return head
}

// headOf is Head, with why it is not known where the log ends.
func headOf(r kind.Reader) (*model.AuditChain, error) {
	rec, at, err := endOf(r)
	switch {
	case rec == nil:
		return &model.AuditChain{Meta: kind.Meta{ID: model.AuditChainID}}, nil
	case err != nil || !rec.Told:
		return rec, err
	}
	head := *rec
	head.Last, head.Digest, head.At = at.last, at.digest[:], at.at
	return &head, nil
}

// endOf is where the log ends, and the record that says so or that commits do; nil if
// there is none.
func endOf(r kind.Reader) (rec *model.AuditChain, at end, err error) {
	rec, ok := model.AuditChains.Get(r, model.AuditChainID)
	switch {
	case !ok:
		return nil, at, nil
	case !rec.Told:
		at = end{last: rec.Last, at: rec.At}
		copy(at.digest[:], rec.Digest)
		return rec, at, nil
	}
	var said string
	if r, is := r.(interface{ JournalEnd() string }); is {
		said = r.JournalEnd()
	}
	at, err = parseEnd(said)
	return rec, at, err
}

// end is where the log ends.
type end struct {
	last   int64
	digest digest
	at     time.Time
}

// String is the end as commits say it: the number of the last entry, when it was
// made, in microseconds, and its digest.
func (e end) String() string {
	text := strconv.AppendInt(make([]byte, 0, 80), e.last, 10)
	text = strconv.AppendInt(append(text, ' '), e.at.UnixMicro(), 10)
	return string(base64.RawStdEncoding.AppendEncode(append(text, ' '), e.digest[:]))
}

func parseEnd(said string) (e end, err error) {
	number, rest, _ := strings.Cut(said, " ")
	at, sum, _ := strings.Cut(rest, " ")
	micro, late := strconv.ParseInt(at, 10, 64)
	var bytes [2 * len(e.digest)]byte
	n, odd := 0, error(nil)
	if base64.RawStdEncoding.DecodedLen(len(sum)) <= len(bytes) {
		n, odd = base64.RawStdEncoding.Decode(bytes[:], []byte(sum))
	}
	e.last, err = strconv.ParseInt(number, 10, 64)
	if err != nil || late != nil || odd != nil || n != copy(e.digest[:], bytes[:]) || e.last < 0 {
		return end{}, fmt.Errorf("the store does not say where the audit log ends: its last commit says %.100q", said)
	}
	e.at = time.UnixMicro(micro).UTC()
	return e, nil
}

// End is what a commit says of the end, and the record that says it in its place or
// that commits do.
func (e end) End(r kind.Reader, told bool) (string, *state.Entry) {
	head := model.AuditChain{Meta: kind.Meta{ID: model.AuditChainID}}
	if before, ok := model.AuditChains.Get(r, model.AuditChainID); ok {
		if told && before.Told {
			return e.String(), nil
		}
		head = *before
	}
	head.Last, head.Digest, head.At, head.Told = e.last, e.digest[:], e.at, told
	if head.UpdatedAt = kind.MomentOf(e.at); head.CreatedAt.IsZero() {
		head.CreatedAt = head.UpdatedAt
	}
	rec := &state.Entry{Def: model.AuditChains.Def, Record: &head}
	if !told {
		return "", rec
	}
	return e.String(), rec
}

// nowhere is the end of a log of which nobody knows where it is. Nothing is added to
// it: entries would take the places of others.
type nowhere struct{ err error }

func (n nowhere) Note(state.Write, time.Time) (state.Chain, []state.Entry, error) {
	return nil, nil, n.err
}

func (nowhere) End(kind.Reader, bool) (string, *state.Entry) { return "", nil }
