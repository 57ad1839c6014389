package api

import (
	"time"

	"netkeep.internal/internal/auth/enroll"
	"netkeep.internal/internal/model"
)

// SignInvitation makes an enrollment of somebody one that can be shown from now on.
func (s *Service) SignInvitation(e *model.Enrollment, subject string) error {
	e.ExpiresAt = s.Sessions.Now().Add(enroll.Lifetime).UTC().Truncate(time.Millisecond)
	return s.Issuer.Issue(e, subject)
}
