package command

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/spf13/cobra"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/screen"
)

func verifyCommand(env Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "ca NAME", Aliases: cas.others(), Args: Exactly(1), ValidArgsFunction: completeNames(env, cas),
		Short:   "Show that a CA is yours, so that it counts.",
		Long:    "Show that a CA is yours, so that it counts: with its key, of which nothing leaves this\nmachine, or with a certificate of it that is made out to its verification token.",
		Example: "  netkeep verify ca staff --ca-cert staff.crt --ca-key staff.key",
	}
	cert := cmd.Flags().String("cert", "", "Certificate of the CA whose common name is the verification token.")
	caCert := cmd.Flags().String("ca-cert", "", "Certificate of the CA, to make the other with.")
	caKey := cmd.Flags().String("ca-key", "", "Private key of the CA, to make the other with.")
	cmd.RunE = with(env, func(cmd *cobra.Command, s *session, args []string) error {
		rec, err := s.find(cmd.Context(), cas, args[0])
		if err != nil {
			return err
		}
		var proof []byte
		switch {
		case *cert != "":
			proof, err = readFile(env, *cert, maxSecret)
		case *caCert != "" && *caKey != "":
			proof, err = proveCA(*caCert, *caKey, rec.text("verificationToken"), s.now())
		default:
			return Usagef("give --ca-cert and --ca-key, or --cert with a certificate whose common name is %s", rec.text("verificationToken"))
		}
		if err != nil {
			return err
		}
		req := remote.Request{Method: "POST", Path: "/cas/" + rec.text("id") + "/verify", Body: proof, Type: "text/plain"}
		if err := s.Call(cmd.Context(), req, nil); err != nil {
			return err
		}
		s.Printf("ca %s is verified\n", screen.Plain(rec.label()))
		return nil
	})
	return verb("verify", "Show that a CA is yours.", cmd)
}

// proveCA makes a certificate of a CA that names the token.
func proveCA(certFile, keyFile, token string, now time.Time) ([]byte, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("the CA: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the CA's key cannot sign")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: token},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, pair.Leaf, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("the CA: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
