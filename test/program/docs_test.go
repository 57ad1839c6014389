package program_test

import (
	"bytes"
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
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// curlEnv makes this program behave like curl, as far as the documentation
// needs it: machines that build netkeep need not have curl.
const curlEnv = "PROGRAM_TEST_AS_CURL"

// asCurl does what curl would with the arguments.
func asCurl(args []string, out io.Writer) error {
	method, url, body, ca := http.MethodGet, "", "", ""
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
			method, body = http.MethodPost, value
		case "-X":
			method = value
		case "--data-binary":
			text, err := os.ReadFile(strings.TrimPrefix(value, "@"))
			if err != nil {
				return err
			}
			method, body = http.MethodPost, string(text)
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
	pool, err := readPool(ca)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = header
	config := &tls.Config{RootCAs: pool}
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

// TestGettingStarted pastes the page into a shell, as a reader would.
func TestGettingStarted(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "getting-started.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 5 {
		t.Fatalf("the page has %d blocks to paste", len(blocks))
	}
	data := t.TempDir()
	p := controller(t, data)
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curl", "openssl"} {
		if err := os.Symlink(self, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	var script bytes.Buffer
	script.WriteString("set -eu\nTOKEN=\n")
	for _, b := range blocks {
		script.Write(b[1])
		script.WriteString("echo\n")
	}
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Stdin, shell.Dir = &script, t.TempDir()
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), curlEnv+"=1",
		"CONTROLLER="+p.ready(), "CA="+filepath.Join(data, "pki", "root.crt"), "PASSWORD="+password)
	var refused bytes.Buffer
	shell.Stderr = &refused
	out, err := shell.Output()
	if err != nil || refused.Len() > 0 {
		t.Fatalf("the page does not work: %v\n%s\n%s", err, &refused, out)
	}
	answers := string(out)
	for _, want := range []string{
		`"isDialAllowed":true`, `"isBindAllowed":false`, "none of the edge routers in common is online",
		`"name":"wiki"`, `"permissions":["Dial"]`, `"type":"Dial"`, `"name":"phone"`,
	} {
		if !strings.Contains(answers, want) {
			t.Errorf("following the page nothing says %s:\n%s", want, answers)
		}
	}
	p.stop()
}
