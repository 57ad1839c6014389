package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
)

// The roots of the two APIs.
const (
	managementRoot = "/edge/management/v1"
	clientRoot     = "/edge/client/v1"
)

// client is one connection to a controller. It is for one goroutine.
type client struct {
	base   string
	header string // that carries the session token
	token  string
	http   *http.Client
	body   bytes.Buffer // the latest reply's
}

// newClient returns a client that trusts certificates of the roots.
func newClient(t *target, roots *x509.CertPool) *client {
	var speaks http.Protocols
	speaks.SetHTTP1(!t.http2)
	speaks.SetHTTP2(t.http2)
	return &client{
		base: t.url, header: t.header,
		http: &http.Client{
			Timeout: t.timeout,
			Transport: &http.Transport{
				TLSClientConfig:    &tls.Config{RootCAs: roots},
				Protocols:          &speaks,
				MaxConnsPerHost:    1,
				DisableCompression: true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// request is one call of an API.
type request struct {
	method, path string
	body         any    // written as JSON; nil for none
	token        string // the client's own if empty
}

// do sends a request and reads the whole reply. The data is valid until the
// next request.
func (c *client) do(r request) (status int, data []byte, err error) {
	sent, err := c.encode(r)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.http.Do(sent)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	c.body.Reset()
	if _, err := c.body.ReadFrom(resp.Body); err != nil {
		return 0, nil, fmt.Errorf("%s %s: reading the answer: %w", r.method, r.path, err)
	}
	return resp.StatusCode, c.body.Bytes(), nil
}

func (c *client) encode(r request) (*http.Request, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
	}
	sent, err := http.NewRequest(r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if r.body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if r.token == "" {
		r.token = c.token
	}
	if r.token != "" {
		sent.Header.Set(c.header, r.token)
	}
	return sent, nil
}

// fetch sends a request that has to succeed and decodes the data of its
// answer.
func fetch[T any](c *client, r request) (reply[T], error) {
	var out reply[T]
	status, data, err := c.do(r)
	if err != nil {
		return out, err
	}
	if status/100 != 2 {
		return out, fmt.Errorf("%s %s: status %d: %s", r.method, r.path, status, shorten(data))
	}
	if err := json.Unmarshal(data, &out); err != nil {
		return out, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	return out, nil
}

// reply is the envelope around every answer.
type reply[T any] struct {
	Data T `json:"data"`
	Meta struct {
		Pagination struct {
			TotalCount int `json:"totalCount"`
		} `json:"pagination"`
	} `json:"meta"`
}

// created is the data of an answer to a create.
type created struct {
	ID string `json:"id"`
}

// record is what scenarios need to know of any record.
type record struct {
	ID             string   `json:"id"`
	Name           string   `json:"name"`
	RoleAttributes []string `json:"roleAttributes"`
}

// credentials is the body of a login by password.
type credentials struct {
	Username string `json:"username"`
	Password string `json:"password"`
}

func loginRequest(root, username, password string) request {
	return request{method: http.MethodPost, path: root + "/authenticate?method=password", body: credentials{username, password}}
}

// login opens a session and uses it from now on.
func (c *client) login(root, username, password string) error {
	r, err := fetch[struct {
		Token string `json:"token"`
	}](c, loginRequest(root, username, password))
	if err != nil {
		return fmt.Errorf("log in as %s: %w", username, err)
	}
	c.token = r.Data.Token
	return nil
}

// logout ends the client's session.
func (c *client) logout(root string) error {
	_, err := fetch[any](c, request{method: http.MethodDelete, path: root + "/current-api-session"})
	return err
}

// shorten keeps an error from repeating a whole page.
func shorten(data []byte) []byte {
	const most = 500
	if len(data) > most {
		return append(data[:most:most], "..."...)
	}
	return data
}
