package state

import (
	"context"
	"sync/atomic"
)

// decision says whether something that may take several writes has begun to
// change what is stored.
type decision struct{ made atomic.Bool }

type decisionKey struct{}

// Deciding returns a context for work that may take several writes: once one of
// them is stored, the end of the context keeps none of the others from being made.
// So nothing is half done because time was over, or called refused.
func Deciding(ctx context.Context) context.Context {
	return context.WithValue(ctx, decisionKey{}, new(decision))
}

// decisionOf is that of a context, one that nobody else sees if it has none.
func decisionOf(ctx context.Context) *decision {
	if d, ok := ctx.Value(decisionKey{}).(*decision); ok {
		return d
	}
	return new(decision)
}
