package model

import (
	"time"

	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/lang/kind"
)

// Receipt says what became of a list of changes, under an id that whoever sent the
// list chose. It is written with the changes, so that it is there if they are; and
// if somebody asks and there is none, one is written that says so, and the changes
// cannot be made any more.
type Receipt struct {
	kind.Meta

	Made bool `json:"made" kind:"server" doc:"Whether the changes were made."`
}

// Receipts is the kind.
var Receipts = kind.Define(kind.Spec[Receipt]{
	Name:    "receipt",
	Path:    "receipts",
	Doc:     "What became of lists of changes, for whoever has lost the answer.",
	Unnoted: true,
})

const (
	// receiptsLast is how long a receipt is kept: whoever has lost an answer asks
	// at once.
	receiptsLast = 24 * time.Hour
	// mostForgotten bounds how many old ones go with one write.
	mostForgotten = 16
)

// Sign notes that changes are being made. It refuses an id under which changes
// were made before, or were said not to have been.
func Sign(w kind.Writer, id string) error {
	switch before, there := Receipts.Get(w, id); {
	case there && before.Made:
		return fault.New(fault.CodePlan, "changes with this id were made already; nothing is made twice")
	case there:
		return fault.New(fault.CodePlan, "somebody has asked after changes with this id and was told that none was made; send them under another id")
	}
	return note(w, id, true)
}

// Settle finds out whether changes were made, and sees to it that the answer stays
// true.
func Settle(w kind.Writer, id string) (made bool, err error) {
	if before, there := Receipts.Get(w, id); there {
		return before.Made, nil
	}
	return false, note(w, id, false)
}

// note writes a receipt and forgets old ones.
func note(w kind.Writer, id string, made bool) error {
	var old []string
	for r := range Receipts.All(w) {
		if w.Now().Sub(r.CreatedAt.Time()) > receiptsLast {
			old = append(old, r.ID)
		}
		if len(old) == mostForgotten {
			break
		}
	}
	for _, id := range old {
		if err := Receipts.Delete(w, id); err != nil {
			return err
		}
	}
	return Receipts.Create(w, &Receipt{Meta: kind.Meta{ID: id}, Made: made})
}
