package server

import (
	"context"
	"errors"
	"time"
)

// failedStop is how long a stop may take once the store has failed. It may have failed
// with a lock in its hands: who waits for that waits for ever, and nothing more can be
// written.
const failedStop = 10 * time.Second

// errStuck is what a stop ends with that was given up.
var errStuck = errors.New("what waits for the store that failed could not be stopped")

// Stop lets running requests finish, then closes everything.
func (s *Server) Stop(ctx context.Context) error {
	return s.patiently(failedStop, func() error { return errors.Join(s.stopInner(), s.drain(ctx), s.close()) })
}

// patiently waits until everything has stopped, or for so long if the store has failed.
func (s *Server) patiently(most time.Duration, stop func() error) error {
	if !s.storeFailed.Load() {
		return stop()
	}
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	select {
	case err := <-stopped:
		return err
	case <-time.After(most):
		return errStuck
	}
}
