// Package console holds what people see in a browser, and what attackers try there: it
// asks a controller for pages over TLS and follows their links and forms.
package console

import (
	"testing"

	"netkeep.internal/test/servertest"
)

// controller is shared by all tests.
var controller *servertest.Server

func TestMain(m *testing.M) {
	trustProviders()
	servertest.Main(m, &controller)
}
