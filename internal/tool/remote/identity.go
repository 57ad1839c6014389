package remote

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"netkeep/internal/tool/profile"
)

// Identity is the file of an identity that has enrolled, as SDKs and tunnelers
// have it too.
type Identity struct {
	Address string `json:"ztAPI"`
	ID      struct {
		Key  string `json:"key"`
		Cert string `json:"cert"`
		CA   string `json:"ca"`
	} `json:"id"`
}

// ReadIdentity reads an identity's file.
func ReadIdentity(path string) (id Identity, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return id, fmt.Errorf("the identity: %w", err)
	}
	if err := json.Unmarshal(data, &id); err != nil || id.ID.Key == "" || id.ID.Cert == "" {
		return id, fmt.Errorf("%s is no file of an identity that has enrolled; make one with: netkeep enroll TOKEN -o FILE", path)
	}
	for _, part := range []*string{&id.ID.Key, &id.ID.Cert, &id.ID.CA} {
		if *part, err = resolve(*part); err != nil {
			return id, fmt.Errorf("the identity %s: %w", path, err)
		}
	}
	return id, nil
}

// resolve is a part of an identity: the text itself, or a file with it.
func resolve(part string) (string, error) {
	if text, ok := strings.CutPrefix(part, "pem:"); ok || part == "" {
		return text, nil
	}
	name := strings.TrimPrefix(part, "file://")
	if strings.Contains(name, "://") {
		return "", errors.New("its key is kept where this command cannot use it")
	}
	data, err := os.ReadFile(name)
	return string(data), err
}

// certificate is what a profile logs in with.
func certificate(p profile.Profile) (pair tls.Certificate, err error) {
	if p.File == "" {
		pair, err = tls.LoadX509KeyPair(p.Cert, p.Key)
	} else {
		var id Identity
		if id, err = ReadIdentity(p.File); err == nil {
			pair, err = tls.X509KeyPair([]byte(id.ID.Cert), []byte(id.ID.Key))
		}
	}
	if err != nil {
		return pair, fmt.Errorf("the client certificate: %w", err)
	}
	return pair, nil
}
