package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Identity is the file of an identity that has enrolled, which SDKs and
// tunnelers are started with.
type Identity struct {
	// API is where the Client API is.
	API string `json:"ztAPI"`
	// APIs is where it is at each of several controllers, for SDKs that take that:
	// there are some that end at once, or want to log in in another way.
	APIs []string `json:"ztAPIs,omitempty"`
	// Own is the same for clients of ours alone.
	Own []string `json:"netkeepAPIs,omitempty"`
	ID  struct {
		// Each is a text after "pem:" or the path of a file after "file://".
		Key  string `json:"key,omitempty"`
		Cert string `json:"cert,omitempty"`
		CA   string `json:"ca,omitempty"`

		Other jsontext.Value `json:",embed"` // of other programs
	} `json:"id"`

	Other jsontext.Value `json:",embed"`
}

// Encode returns the file.
func (i *Identity) Encode() ([]byte, error) {
	data, err := json.Marshal(i, jsontext.WithIndent("  "), jsontext.EscapeForHTML(false))
	return append(data, '\n'), err
}

// Others is where else the Client API is.
func (i *Identity) Others() []string {
	var all []string
	for _, at := range slices.Concat(i.APIs, i.Own) {
		if at != i.API && !slices.Contains(all, at) {
			all = append(all, at)
		}
	}
	return all
}

// ReadIdentity reads an identity's file, and the files that it names: what it
// returns holds texts alone.
func ReadIdentity(path string) (id Identity, err error) {
	if id, err = OpenIdentity(path); err != nil {
		return id, err
	}
	if id.API == "" && len(id.APIs) > 0 {
		id.API = id.APIs[0]
	}
	for _, part := range []*string{&id.ID.Key, &id.ID.Cert, &id.ID.CA} {
		if *part, err = resolve(*part); err != nil {
			return id, fmt.Errorf("the identity %s: %w", path, err)
		}
	}
	return id, nil
}

// OpenIdentity reads an identity's file as it is.
func OpenIdentity(path string) (id Identity, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return id, fmt.Errorf("the identity: %w", err)
	}
	switch err := json.Unmarshal(data, &id); {
	case err == nil && id.API != "" && id.ID.Key == "" && id.ID.Cert == "":
		return id, fmt.Errorf("%s is of an identity that has a password; log in with: netkeep login %s --username NAME", path, id.API)
	case err != nil || id.ID.Key == "" || id.ID.Cert == "":
		return id, fmt.Errorf("%s is no file of an identity that has enrolled; make one with: netkeep enroll TOKEN -o FILE", path)
	}
	return id, nil
}

// Inline is a text as a part of an identity's file.
func Inline(text []byte) string { return inline + string(text) }

// IsInline reports whether a part of an identity's file is the text itself.
func IsInline(part string) bool { return strings.HasPrefix(part, inline) }

const inline = "pem:"

// resolve is a part of an identity: the text itself, or a file with it.
func resolve(part string) (string, error) {
	if text, ok := strings.CutPrefix(part, inline); ok || part == "" {
		return text, nil
	}
	name := strings.TrimPrefix(part, "file://")
	if strings.Contains(name, "://") {
		return "", errors.New("its key is kept where this command cannot use it")
	}
	data, err := os.ReadFile(name)
	return string(data), err
}

// certificate is what an account logs in with.
func certificate(a Account) (pair tls.Certificate, err error) {
	if a.File == "" {
		pair, err = tls.LoadX509KeyPair(a.Cert, a.Key)
	} else {
		var id Identity
		if id, err = ReadIdentity(a.File); err == nil {
			pair, err = tls.X509KeyPair([]byte(id.ID.Cert), []byte(id.ID.Key))
		}
	}
	if err != nil {
		return pair, fmt.Errorf("the client certificate: %w", err)
	}
	return pair, nil
}
