package servertest

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	"netkeep.internal/test/certtest"
)

// Certificate returns a certificate as PEM that signs itself and is good for
// an hour, of a CA or not.
func Certificate(t testing.TB, ca bool) string {
	t.Helper()
	return string(certtest.New(t, nil, func(c *x509.Certificate) {
		c.Subject, c.IsCA, c.KeyUsage = pkix.Name{CommonName: Unique("ca")}, ca, x509.KeyUsageCertSign
	}).PEM())
}
