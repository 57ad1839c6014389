package state

import (
	"errors"

	"netkeep.internal/internal/data/format"
	"netkeep.internal/internal/data/store"
	"netkeep.internal/internal/lang/fault"
)

// heed has all writes refused for as long as the store has a format that this
// version cannot use; nil is that it can.
func (s *State) heed(unusable error) {
	if unusable == nil {
		s.unusable = nil
		return
	}
	_, newer := errors.AsType[*format.NewerError](unusable)
	if newer && s.unusable == nil {
		s.opt.Outgrown(unusable)
	}
	s.unusable = &fault.Error{Code: fault.CodeUnavailable, Reason: unusable.Error()}
}

// heedBatch returns why a batch must not be taken over: it is written in a
// format that this version cannot use, or says that from now on all are.
func (s *State) heedBatch(b store.Batch) error {
	for _, op := range b.Ops {
		if op.Key == format.Key {
			s.format.Store(int64(format.In(op.Value)))
			return format.Usable(op.Value)
		}
	}
	return s.unusable
}
