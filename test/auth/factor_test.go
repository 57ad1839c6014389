package auth_test

import (
	"bytes"
	"image/png"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pquerna/otp/hotp"

	"netkeep.internal/test/servertest"
)

// The paths of the second factor.
const (
	mfa         = "current-identity/mfa"
	mfaVerify   = mfa + "/verify"
	mfaQR       = mfa + "/qr-code"
	mfaCodes    = mfa + "/recovery-codes"
	mfaComplete = "authenticate/mfa"
	codeHeader  = "mfa-validation-code"
)

// factor is the second factor of an identity.
type factor struct {
	id     string
	client *servertest.Client // that enrolled it
	secret string
	codes  []string // for recovery
	last   int64    // step of the last code
}

// start enrolls a second factor and leaves it to be verified.
func start(t testing.TB, c *servertest.Client, id string) *factor {
	t.Helper()
	made := c.Post(mfa, nil).Want(http.StatusCreated)
	data := c.Get(mfa).Want(http.StatusOK).Data()
	if self := made.At("data._links.self.href"); made.ID() != data["id"] || self != "./current-identity/mfa" {
		t.Errorf("the new factor is %s at %v, not %v", made.ID(), self, data["id"])
	}
	u, err := url.Parse(data["provisioningUrl"].(string))
	if err != nil {
		t.Fatal(err)
	}
	f := &factor{id: id, client: c, secret: u.Query().Get("secret")}
	for _, code := range data["recoveryCodes"].([]any) {
		f.codes = append(f.codes, code.(string))
	}
	return f
}

// enroll gives an identity a second factor.
func enroll(t testing.TB, id string) *factor {
	t.Helper()
	f := start(t, enter(t, id), id)
	f.client.Post(mfaVerify, M{"code": f.code(t)}).Want(http.StatusOK)
	return f
}

// now is the present step.
func now() int64 { return time.Now().Unix() / 30 }

// code returns a code that was not used before. There are four at a time: one
// of the step before, which a clock may be behind, and those to come.
func (f *factor) code(t testing.TB) string {
	t.Helper()
	f.last = max(f.last+1, now()-1)
	if f.last > now()+2 {
		t.Fatal("the test needs more codes than there are")
	}
	return f.at(t, f.last)
}

// at returns the code of a step.
func (f *factor) at(t testing.TB, step int64) string {
	t.Helper()
	code, err := hotp.GenerateCode(f.secret, uint64(step))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// recovery returns a recovery code that was not used before.
func (f *factor) recovery() string {
	code := f.codes[0]
	f.codes = f.codes[1:]
	return code
}

// TestFactorLife takes a second factor from its enrollment to its end.
func TestFactorLife(t *testing.T) {
	both(t, func(t *testing.T, root string) {
		id := add(t, nil)
		c := enter(t, id)
		at := func(path string) string { return root + path }
		c.Get(at(mfa)).Fails(404, "NOT_FOUND", "")
		c.Get(at(mfaQR)).Fails(404, "NOT_FOUND", "")
		c.Post(at(mfaVerify), M{"code": "QQQQQQ"}).Fails(404, "NOT_FOUND", "")
		c.Post(at(mfaComplete), M{"code": "QQQQQQ"}).Fails(409, "MFA_NOT_ENROLLED", "")
		c.Get(at(mfaCodes)).Fails(404, "NOT_FOUND", "")
		c.Post(at(mfaCodes), M{"code": "QQQQQQ"}).Fails(404, "NOT_FOUND", "")
		c.Delete(at(mfa)).Fails(404, "NOT_FOUND", "")

		f := start(t, c, id)
		c.Post(at(mfa), nil).Fails(409, "MFA_EXISTS", "")
		if got := c.Get(at(mfa)).Data(); got["isVerified"] != false || len(f.codes) != 20 {
			t.Errorf("the enrollment is %v", got)
		}
		c.Post(at(mfaComplete), M{"code": f.code(t)}).Fails(409, "MFA_NOT_ENROLLED", "")
		c.Post(at(mfaVerify), M{"code": f.codes[0]}).Fails(400, "MFA_INVALID_TOKEN", "")
		c.Post(at(mfaVerify), M{}).Fails(400, "COULD_NOT_VALIDATE", "code")
		c.Post(at(mfaVerify), M{"code": f.code(t)}).Want(200)

		c.Post(at(mfaVerify), M{"code": f.at(t, f.last)}).Fails(404, "NOT_FOUND", "")
		c.Get(at(mfaQR)).Fails(404, "NOT_FOUND", "")
		c.Post(at(mfa), nil).Fails(409, "MFA_EXISTS", "")
		got := c.Get(at(mfa)).Data()
		if got["isVerified"] != true || got["provisioningUrl"] != nil || len(got["recoveryCodes"].([]any)) != 0 {
			t.Errorf("a verified factor shows %v", got)
		}
		now := c.Get(at(session)).Data()
		if now["isMfaRequired"] != true || now["isMfaComplete"] != true {
			t.Errorf("the session that verified is %v", now)
		}
		if got := shared.Admin(t).Get("identities/" + id).At("data.isMfaEnabled"); got != true {
			t.Errorf("isMfaEnabled is %v", got)
		}
		c.Delete(at(mfa)).Fails(400, "MFA_INVALID_TOKEN", "")
		c.With(codeHeader, "QQQQQQ").Delete(at(mfa)).Fails(400, "MFA_INVALID_TOKEN", "")
		c.With(codeHeader, f.code(t)).Delete(at(mfa)).Want(200)
		c.Get(at(mfa)).Fails(404, "NOT_FOUND", "")
		works(t, enter(t, id).With("x", "y"))
		if got := queries(t, enter(t, id)); len(got) != 0 {
			t.Errorf("a session after the end must still show %v", got)
		}
	})
}

// TestUnverifiedFactorNeedsNoCode gives up an enrollment.
func TestUnverifiedFactorNeedsNoCode(t *testing.T) {
	id := add(t, nil)
	c := enter(t, id)
	first := start(t, c, id)
	if got := queries(t, enter(t, id)); len(got) != 0 {
		t.Errorf("a factor that was never verified asks for %v", got)
	}
	c.Delete(mfa).Want(200)
	if second := start(t, c, id); second.secret == first.secret || second.codes[0] == first.codes[0] {
		t.Error("two enrollments share their secrets")
	}
	shared.Admin(t).Delete("identities/" + id + "/mfa").Want(200)
	shared.Admin(t).Delete("identities/" + id + "/mfa").Want(200)
	c.Get(mfa).Fails(404, "NOT_FOUND", "")
}

func TestQRCode(t *testing.T) {
	both(t, func(t *testing.T, root string) {
		id := add(t, nil)
		c := enter(t, id)
		start(t, c, id)
		a := c.Get(root + mfaQR).Want(200)
		if got := a.Header.Get("Content-Type"); got != "image/png" {
			t.Errorf("it is %s", got)
		}
		img, err := png.Decode(bytes.NewReader(a.Raw))
		if err != nil {
			t.Fatal(err)
		}
		if size := img.Bounds().Size(); size.X != 256 || size.Y != 256 {
			t.Errorf("it is %v large", size)
		}
	})
}

// TestCodeCompletesASession shows what is asked for, with either kind of code.
func TestCodeCompletesASession(t *testing.T) {
	both(t, func(t *testing.T, root string) {
		f := enroll(t, add(t, M{"isAdmin": true}))
		for _, code := range []string{f.code(t), f.recovery()} {
			c := enter(t, f.id)
			want := []any{M{
				"typeId": "MFA", "provider": "ziti", "httpMethod": "POST", "httpUrl": "./authenticate/mfa",
				"minLength": 4.0, "maxLength": 6.0, "format": "alphaNumeric", "scopes": []any{},
			}}
			if diff := cmp.Diff(want, c.Get(root+session).At("data.authQueries")); diff != "" {
				t.Errorf("queries differ (-want +got):\n%s", diff)
			}
			c.Get("identities").Fails(401, "UNAUTHORIZED", "")
			c.Post(root+mfaComplete, M{"code": "QQQQQQ"}).Fails(400, "MFA_INVALID_TOKEN", "")
			c.Get("identities").Fails(401, "UNAUTHORIZED", "")
			c.Post(root+mfaComplete, M{"code": code}).Want(200)
			c.Get("identities").Want(200)
			if got := c.Get(root + session).Data(); got["isMfaComplete"] != true || len(got["authQueries"].([]any)) != 0 {
				t.Errorf("the session is %v", got)
			}
			if got := queries(t, enter(t, f.id)); len(got) != 1 {
				t.Error("one session's code counts for another")
			}
		}
	})
}

func TestRecoveryCodes(t *testing.T) {
	both(t, func(t *testing.T, root string) {
		f := enroll(t, add(t, nil))
		c, path := f.client, root+mfaCodes
		list := func(a *servertest.Answer) []string {
			data, of := a.Want(200).Data(), c.Get(root+mfa).Want(200).Data()
			var codes []string
			for _, code := range data["recoveryCodes"].([]any) {
				codes = append(codes, code.(string))
			}
			for _, name := range []string{"id", "createdAt", "updatedAt", "tags", "_links"} {
				if diff := cmp.Diff(of[name], data[name]); diff != "" {
					t.Errorf("%s differs from the factor's (-factor +codes):\n%s", name, diff)
				}
			}
			return codes
		}
		// A recovery code shows nothing, wherever it is.
		c.With(codeHeader, f.codes[1]).Get(path).Fails(400, "MFA_INVALID_TOKEN", "")
		c.Do("GET", path, M{"code": f.codes[1]}).Fails(400, "MFA_INVALID_TOKEN", "")
		c.Get(path).Fails(400, "MFA_INVALID_TOKEN", "")
		if diff := cmp.Diff(f.codes, list(c.Do("GET", path, M{"code": f.code(t)}))); diff != "" {
			t.Errorf("codes differ (-want +got):\n%s", diff)
		}
		used := f.recovery()
		enter(t, f.id).Post(root+mfaComplete, M{"code": used}).Want(200)
		if diff := cmp.Diff(f.codes, list(c.With(codeHeader, f.code(t)).Get(path))); diff != "" {
			t.Errorf("codes differ after one was used (-want +got):\n%s", diff)
		}
		c.Post(path, M{"code": "QQQQQQ"}).Fails(400, "MFA_INVALID_TOKEN", "")
		c.Post(path, M{"code": f.recovery()}).Want(200)
		fresh := list(c.With(codeHeader, f.code(t)).Get(path))
		if len(fresh) != 20 || strings.Contains(strings.Join(fresh, " "), f.codes[0]) {
			t.Errorf("the new codes are %v", fresh)
		}
		enter(t, f.id).Post(root+mfaComplete, M{"code": f.codes[0]}).Fails(400, "MFA_INVALID_TOKEN", "")
		enter(t, f.id).Post(root+mfaComplete, M{"code": fresh[0]}).Want(200)
		c.With(codeHeader, fresh[1]).Delete(root + mfa).Want(200)
	})
}

// TestCodesReadOnce has a program that asks its user for one code, replaces the
// recovery codes with it and reads them with the same. Nobody else can, and it
// works for nothing else and not twice.
func TestCodesReadOnce(t *testing.T) {
	both(t, func(t *testing.T, root string) {
		f := enroll(t, add(t, nil))
		c, path := f.client, root+mfaCodes
		other := enter(t, f.id)
		other.Post(root+mfaComplete, M{"code": f.recovery()}).Want(200)
		code := f.code(t)
		c.Post(path, M{"code": code}).Want(200)
		other.With(codeHeader, code).Get(path).Fails(400, "MFA_INVALID_TOKEN", "")
		c.Post(path, M{"code": code}).Fails(400, "MFA_INVALID_TOKEN", "")
		enter(t, f.id).Post(root+mfaComplete, M{"code": code}).Fails(400, "MFA_INVALID_TOKEN", "")
		if fresh := c.With(codeHeader, code).Get(path).Want(200).Data()["recoveryCodes"].([]any); len(fresh) != 20 || fresh[0] == f.codes[0] {
			t.Errorf("the new codes are %v", fresh)
		}
		c.With(codeHeader, code).Get(path).Fails(400, "MFA_INVALID_TOKEN", "")
	})
}

// TestMustEnroll has a policy that asks for a code of somebody who has none
// yet.
func TestMustEnroll(t *testing.T) {
	both(t, func(t *testing.T, root string) {
		policy := addPolicy(t, func(_, secondary M) { secondary["requireTotp"] = true })
		id := add(t, M{"authPolicyId": policy})
		c := enter(t, id)
		if diff := cmp.Diff([]any{"MFA"}, queries(t, c)); diff != "" {
			t.Errorf("queries differ (-want +got):\n%s", diff)
		}
		c.Get(root+"current-identity").Fails(401, "UNAUTHORIZED", "")
		c.Post(root+mfaComplete, M{"code": "QQQQQQ"}).Fails(409, "MFA_NOT_ENROLLED", "")
		c.Delete(root+mfa).Fails(401, "UNAUTHORIZED", "")
		f := start(t, c, id)
		c.Get(root + mfaQR).Want(200)
		c.Get(root+"current-identity").Fails(401, "UNAUTHORIZED", "")
		c.Post(root+mfaVerify, M{"code": f.code(t)}).Want(200)
		c.Get(root + "current-identity").Want(200)
		other := enter(t, id)
		other.Get(root+"current-identity").Fails(401, "UNAUTHORIZED", "")
		other.Post(root+mfaComplete, M{"code": f.code(t)}).Want(200)
		other.Get(root + "current-identity").Want(200)
	})
}

// TestSessionsBeforeEnrollment checks that enrolling leaves other sessions as
// they are, and that an admin's removal opens no door to those that wait.
func TestSessionsBeforeEnrollment(t *testing.T) {
	id := add(t, nil)
	before := enter(t, id)
	f := enroll(t, id)
	before.Get("current-identity").Want(200)
	waiting := enter(t, id)
	waiting.Get("current-identity").Fails(401, "UNAUTHORIZED", "")
	shared.Admin(t).Delete("identities/" + id + "/mfa").Want(200)
	waiting.Get("current-identity").Fails(401, "UNAUTHORIZED", "")
	waiting.Post(mfaComplete, M{"code": f.recovery()}).Fails(409, "MFA_NOT_ENROLLED", "")
	enter(t, id).Get("current-identity").Want(200)
}

// TestGuessingCodes tries codes until even the right one is refused.
func TestGuessingCodes(t *testing.T) {
	f := enroll(t, add(t, nil))
	c := enter(t, f.id)
	limited := false
	for range 30 {
		if a := c.Post(mfaComplete, M{"code": "QQQQQQ"}); a.Status == http.StatusTooManyRequests {
			a.Fails(429, "RATE_LIMITED", "")
			limited = true
			break
		} else {
			a.Fails(400, "MFA_INVALID_TOKEN", "")
		}
	}
	if !limited {
		t.Error("codes may be guessed without end")
	}
	// Not even in another session.
	enter(t, f.id).Post(mfaComplete, M{"code": f.code(t)}).Fails(429, "RATE_LIMITED", "")
	shared.Nobody(t).Get("/version").Want(200)
	other := enroll(t, add(t, nil))
	enter(t, other.id).Post(mfaComplete, M{"code": other.code(t)}).Want(200)
}
