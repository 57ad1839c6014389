// Command paste stands in for curl and openssl, as far as the documentation
// uses them: machines that build netkeep need not have either. It does what the
// program would whose name it was started under.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	do := func() error { return asCurl(os.Args[1:], os.Stdout) }
	if filepath.Base(os.Args[0]) == "openssl" {
		do = func() error { return asOpenSSL(os.Args[1:]) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// asCurl does what curl would with the arguments.
func asCurl(args []string, out io.Writer) error {
	method, url, body, ca := "", "", "", ""
	certFile, keyFile, into := "", "", ""
	header := http.Header{}
	for i := 0; i < len(args); i++ {
		if args[i] == "-s" {
			continue
		}
		if !strings.HasPrefix(args[i], "-") {
			url = args[i]
			continue
		}
		flag := args[i]
		if i++; i == len(args) {
			return fmt.Errorf("%s needs a value", flag)
		}
		switch value := args[i]; flag {
		case "-H":
			name, text, _ := strings.Cut(value, ":")
			if text = strings.TrimSpace(text); text != "" {
				header.Set(name, text)
			}
		case "-d":
			body = value
		case "-X":
			method = value
		case "--data-binary":
			text, err := os.ReadFile(strings.TrimPrefix(value, "@"))
			if err != nil {
				return err
			}
			body = string(text)
		case "--cacert":
			ca = value
		case "--cert":
			certFile = value
		case "--key":
			keyFile = value
		case "-o":
			into = value
		default:
			return fmt.Errorf("the documentation uses curl %s, which its test does not know", flag)
		}
	}
	switch {
	case method != "":
	case body != "":
		method = http.MethodPost
	default:
		method = http.MethodGet
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return err
		}
		config.RootCAs.AppendCertsFromPEM(text)
	}
	if certFile != "" {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		fmt.Fprintf(os.Stderr, "%s %s: %s\n", method, url, resp.Status)
	}
	if into != "" {
		f, err := os.Create(into)
		if err != nil {
			return err
		}
		defer f.Close()
		out = f
	}
	_, err = io.Copy(out, resp.Body)
	return err
}

// asOpenSSL makes a key or a request for a certificate, as openssl would with
// the arguments of the documentation.
func asOpenSSL(args []string) error {
	keyFile, subject, into := "", "", ""
	for i, arg := range args[:len(args)-1] {
		switch next := args[i+1]; arg {
		case "-key":
			keyFile = next
		case "-subj":
			subject = strings.TrimPrefix(next, "/CN=")
		case "-out":
			into = next
		}
	}
	block := &pem.Block{Type: "PRIVATE KEY"}
	switch args[0] {
	case "ecparam":
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		if block.Bytes, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return err
		}
	case "req":
		text, err := os.ReadFile(keyFile)
		if err != nil {
			return err
		}
		decoded, _ := pem.Decode(text)
		key, err := x509.ParsePKCS8PrivateKey(decoded.Bytes)
		if err != nil {
			return err
		}
		block.Type = "CERTIFICATE REQUEST"
		if block.Bytes, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: subject}}, key); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the documentation uses openssl %s, which its test does not know", args[0])
	}
	return os.WriteFile(into, pem.EncodeToMemory(block), 0o600)
}
