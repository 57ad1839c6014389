package auth_test

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"netkeep.internal/test/servertest"
)

// TestStoredSecrets looks for everything that lets somebody in, in every byte
// that a controller keeps but for its keys: the store, its log, and a snapshot.
func TestStoredSecrets(t *testing.T) {
	dir := t.TempDir()
	s, err := servertest.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{}
	admin := s.Admin(t)
	id := admin.Post("identities", M{"name": "phone", "type": "Device", "isAdmin": false, "enrollment": M{"ott": true}}).Want(http.StatusCreated).ID()
	router := admin.Post("edge-routers", M{"name": "edge"}).Want(http.StatusCreated).ID()
	for name, invitation := range map[string]M{
		"invitation":          admin.Get("identities/" + id + "/enrollments").Want(http.StatusOK).List()[0],
		"router's invitation": {"token": admin.Get("edge-routers/" + router).Data()["enrollmentToken"], "jwt": admin.Get("edge-routers/" + router).Data()["enrollmentJwt"]},
	} {
		secrets["token of the "+name] = invitation["token"].(string)
		secrets["JWT of the "+name] = invitation["jwt"].(string)
	}
	user := s.AddUser(t, false)
	c := s.Login(t, user.Username, user.Password)
	c.Post("/edge/client/v1/current-identity/mfa", M{}).Want(http.StatusCreated)
	factor := c.Get("/edge/client/v1/current-identity/mfa").Want(http.StatusOK).Data()
	u, err := url.Parse(factor["provisioningUrl"].(string))
	if err != nil {
		t.Fatal(err)
	}
	secrets["secret of one-time codes"] = u.Query().Get("secret")
	for _, code := range factor["recoveryCodes"].([]any)[:3] {
		secrets["recovery code "+code.(string)] = code.(string)
	}
	secrets["API session's token"] = c.Token
	secrets["password"] = user.Password
	admin.Post("database/snapshot", nil).Want(http.StatusOK)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(filepath.Join(dir, "data"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "pki":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		for name, secret := range secrets {
			if bytes.Contains(text, []byte(secret)) {
				t.Errorf("the %s is in %s", name, path)
			}
		}
		return err
	})
	if err != nil || files < 3 {
		t.Fatalf("%d files were read: %v", files, err)
	}

	// Who has the keys has them again.
	again, err := servertest.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := again.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	got := again.Admin(t).Get("identities/" + id + "/enrollments").Want(http.StatusOK).List()[0]["token"]
	if got != secrets["token of the invitation"] {
		t.Errorf("the invitation's token is %v", got)
	}
}
