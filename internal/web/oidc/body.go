package oidc

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/fault"
	"netkeep.internal/internal/model"
)

// said is what a request of a login says, as a form or as JSON.
type said struct {
	ID          string        `json:"id"`
	Username    string        `json:"username"`
	Password    string        `json:"password"`
	Code        string        `json:"code"`
	ConfigTypes []string      `json:"configTypes"`
	EnvInfo     model.EnvInfo `json:"envInfo"`
	SDKInfo     model.SDKInfo `json:"sdkInfo"`
}

// maxTypes is how many config types a client may ask for.
const maxTypes = 1000

// read reads what a request says.
func read(r *http.Request) (in said, err error) {
	data, err := io.ReadAll(r.Body) // which is bounded, and here already
	if err != nil {
		return in, fault.Wrap(fault.CodeBody, err)
	}
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch strings.TrimSpace(kind) {
	case "application/x-www-form-urlencoded":
		in, err = readForm(string(data))
	case "application/json":
		err = json.Unmarshal(data, &in)
	default:
		return in, fault.New(fault.CodeContentType, "the body must be application/x-www-form-urlencoded or application/json")
	}
	if err != nil {
		return in, fault.New(fault.CodeBody, "the body cannot be read")
	}
	if asked := r.URL.Query(); in.ID == "" {
		if in.ID = asked.Get("authRequestID"); in.ID == "" {
			in.ID = asked.Get("id")
		}
	}
	return in, in.check()
}

func readForm(text string) (in said, err error) {
	form, err := url.ParseQuery(text)
	if err != nil {
		return in, err
	}
	in = said{ID: form.Get("id"), Username: form.Get("username"), Password: form.Get("password"), Code: form.Get("code"), ConfigTypes: form["configTypes"]}
	if in.ID == "" {
		in.ID = form.Get("authRequestID")
	}
	in.EnvInfo = model.EnvInfo{
		Arch: form.Get("envArch"), Domain: form.Get("envDomain"), Hostname: form.Get("envHostname"), OS: form.Get("envOs"),
		OSRelease: form.Get("envOsRelease"), OSVersion: form.Get("envOsVersion"),
	}
	in.SDKInfo = model.SDKInfo{
		AppID: form.Get("sdkAppID"), AppVersion: form.Get("sdkAppVersion"), Branch: form.Get("sdkBranch"), Revision: form.Get("sdkRevision"),
		Type: form.Get("sdkType"), Version: form.Get("sdkVersion"),
	}
	return in, nil
}

// check says what is wrong with what a request says, before anything is made of it.
func (in said) check() error {
	for _, one := range []struct {
		field, text string
		most        int
	}{
		{"username", in.Username, 100}, {"password", in.Password, model.MaxPassword}, {"code", in.Code, 100},
	} {
		if utf8.RuneCountInString(one.text) > one.most {
			return fault.Invalid(one.field, "is too long", nil)
		}
	}
	if len(in.ConfigTypes) > maxTypes {
		return fault.Invalid("configTypes", "are too many", nil)
	}
	return nil
}

// body is a body that has been read.
func body(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }

// authorKey is where the context of a request has its author.
type authorKey struct{}

func withAuthor(ctx context.Context, by state.Author) context.Context {
	return context.WithValue(ctx, authorKey{}, by)
}

// authorOf is who makes the writes of a request.
func authorOf(ctx context.Context) state.Author {
	by, ok := ctx.Value(authorKey{}).(state.Author)
	if !ok {
		return state.Nobody
	}
	return by
}
