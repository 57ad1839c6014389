package state_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

// Every State that a test opens must be gone when it is closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var background = context.Background()
