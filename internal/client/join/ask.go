package join

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"netkeep.internal/internal/client/remote"
)

const (
	// Path is where controllers are asked.
	Path = "/netkeep/join"
	// Protocol is the form of requests and answers.
	Protocol = 1
	// MaxRequest and MaxAnswer bound them.
	MaxRequest = 16 << 10
	MaxAnswer  = 2 << 20

	askTime = 40 * time.Second
)

// Request is what a controller says that joins.
type Request struct {
	Protocol int       `json:"protocol"`
	ID       string    `json:"id"`
	Secret   string    `json:"secret"`
	Seal     []byte    `json:"seal"` // the key to seal for
	Version  string    `json:"version"`
	Format   int       `json:"format"` // the newest of the store that it can work with
	Oldest   int       `json:"oldest"` // and the oldest; 0 if there is only one
	Time     time.Time `json:"time"`
	// Peer is the host and port where it is reached as a member of the store;
	// empty if the store is a cluster by address.
	Peer string `json:"peer,omitempty"`
}

// Answer is what it gets.
type Answer struct {
	Controller string   `json:"controller"` // its id from now on
	Keys       []byte   `json:"keys"`       // sealed
	Members    []string `json:"members"`    // URLs of those of the store
}

// Refusal is the answer of one who does not let it join.
type Refusal struct {
	Reason string `json:"error"`
}

func (r *Refusal) Error() string { return r.Reason }

// errOther is that of an address at which there is somebody else.
var errOther = errors.New("is no controller of the network that the token is for: ask the network's admin for another, or mend where the address leads")

// Ask has the controllers of a token let this one join, one after the other
// until one answers. It sends the secret to nobody else.
func Ask(ctx context.Context, t Token, r Request) (Answer, error) {
	r.Protocol, r.ID, r.Secret = Protocol, t.ID, t.Secret
	body, err := json.Marshal(r)
	if err != nil {
		return Answer{}, err
	}
	var failed error
	for _, at := range t.Addresses {
		answer, err := askAt(ctx, t, at, body)
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			return Answer{}, fmt.Errorf("the controller at %s refuses: %w", at, refusal)
		}
		if err == nil {
			return answer, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", at, err))
	}
	return Answer{}, failed
}

func askAt(ctx context.Context, t Token, at string, body []byte) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	config, err := t.trust(ctx, at)
	if err != nil {
		return a, err
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	c := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+at+Path, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return a, remote.Explain("https://"+at, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer))
	if err != nil {
		return a, err
	}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(text, &a); err != nil {
			return a, fmt.Errorf("an answer that is none of netkeep: %w", err)
		}
		return a, nil
	}
	refusal := new(Refusal)
	if json.Unmarshal(text, refusal) != nil || refusal.Reason == "" {
		return a, fmt.Errorf("answered with status %d, as a version does that nobody can join: update it", resp.StatusCode)
	}
	return a, refusal
}

// trust finds out whether a controller is of the network of the token, and
// returns how to reach it for certain.
func (t Token) trust(ctx context.Context, at string) (*tls.Config, error) {
	if t.Served != "" {
		if config, err := t.pinned(ctx, at); err == nil {
			return config, nil
		}
	}
	root, err := remote.Authority(ctx, "https://"+at)
	if err != nil {
		return nil, err
	}
	if remote.Fingerprint(root) != t.Root {
		return nil, errOther
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, nil
}

// pinned trusts the one certificate that the token names, which others have
// issued.
func (t Token) pinned(ctx context.Context, at string) (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // VerifyConnection does
		VerifyConnection: func(state tls.ConnectionState) error {
			sum := sha256.Sum256(state.PeerCertificates[0].Raw)
			if hex.EncodeToString(sum[:]) != t.Served {
				return errOther
			}
			return nil
		},
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{}, Config: config.Clone()}
	conn, err := dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	return config, conn.Close()
}
