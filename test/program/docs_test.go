package program_test

import (
	"bytes"
	"crypto/tls"
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
const curlEnv = "NETKEEP_TEST_AS_CURL"

// asCurl does what curl would with the arguments.
func asCurl(args []string, out io.Writer) error {
	method, url, body, ca := http.MethodGet, "", "", ""
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
		case "--cacert":
			ca = value
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
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}, Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		fmt.Fprintf(os.Stderr, "%s %s: %s\n", method, url, resp.Status)
	}
	_, err = io.Copy(out, resp.Body)
	return err
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
	if err := os.Symlink(self, filepath.Join(bin, "curl")); err != nil {
		t.Fatal(err)
	}
	var script bytes.Buffer
	script.WriteString("set -eu\nTOKEN=\n")
	for _, b := range blocks {
		script.Write(b[1])
		script.WriteString("echo\n")
	}
	shell := exec.CommandContext(t.Context(), "bash")
	shell.Stdin = &script
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), curlEnv+"=1",
		"NETKEEP_URL="+p.ready(), "NETKEEP_CA="+filepath.Join(data, "pki", "root.crt"), "PASSWORD="+password)
	var refused bytes.Buffer
	shell.Stderr = &refused
	out, err := shell.Output()
	if err != nil || refused.Len() > 0 {
		t.Fatalf("the page does not work: %v\n%s\n%s", err, &refused, out)
	}
	answers := string(out)
	for _, want := range []string{
		`"isDialAllowed":true`, `"isBindAllowed":false`, "none of the edge routers in common is online",
		`"name":"wiki"`, `"permissions":["Dial"]`, `"type":"Dial"`,
	} {
		if !strings.Contains(answers, want) {
			t.Errorf("following the page nothing says %s:\n%s", want, answers)
		}
	}
	p.stop()
}
