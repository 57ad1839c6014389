package authn_test

import (
	"testing"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// TestBroughtTokens has a session keep the token that it came with, which no key of ours has
// made: it ends when keys are rotated, as those of a key of before do.
func TestBroughtTokens(t *testing.T) {
	key := []byte("a key")
	s := &authn.APISessions{Keys: func() [][]byte { return [][]byte{key} }}
	own := &model.APISession{Meta: kind.Meta{ID: "own"}, TokenHash: model.TokenHash(authn.KeyedToken(key, "own"))}
	brought := &model.APISession{Meta: kind.Meta{ID: "brought"}, Brought: "a token of before", TokenHash: model.TokenHash("a token of before")}
	if got := s.Token(own); got != authn.KeyedToken(key, "own") || s.Aged(own) {
		t.Errorf("a session of ours has the token %q", got)
	}
	if got := s.Token(brought); got != "a token of before" || !s.Aged(brought) {
		t.Errorf("a session that was taken over has the token %q", got)
	}
}
