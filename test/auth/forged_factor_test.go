package auth_test

import (
	"net/http"
	"strings"
	"testing"

	"netkeep.internal/test/servertest"
)

// forgedCodes are codes that complete no session. Each has an identity of its
// own, since few may be tried for one.
func forgedCodes(t *testing.T) []attempt {
	code := func(name string, forge func(f *factor) any) attempt {
		return attempt{name, func(t *testing.T) *servertest.Answer {
			f := enroll(t, add(t, nil))
			c := enter(t, f.id)
			a := c.Post(mfaComplete, M{"code": forge(f)})
			c.Get("current-identity").Fails(http.StatusUnauthorized, "UNAUTHORIZED", "")
			return a
		}}
	}
	other := enroll(t, add(t, nil))
	use := func(f *factor, code string) string {
		enter(t, f.id).Post(mfaComplete, M{"code": code}).Want(http.StatusOK)
		return code
	}
	return []attempt{
		code("empty", func(*factor) any { return "" }),
		code("letters", func(*factor) any { return "QQQQQQ" }),
		code("null", func(*factor) any { return nil }),
		code("a number", func(*factor) any { return 123456 }),
		code("a list", func(f *factor) any { return []any{f.at(t, now())} }),
		code("wrong", func(f *factor) any { return wrongCode(t, f) }),
		code("of long ago", func(f *factor) any { return f.at(t, now()-10) }),
		code("of a step ago too many", func(f *factor) any { return f.at(t, now()-4) }),
		code("of the far future", func(f *factor) any { return f.at(t, now()+100) }),
		code("of the enrollment", func(f *factor) any { return f.at(t, f.last) }),
		code("used", func(f *factor) any { return use(f, f.code(t)) }),
		code("before a used one", func(f *factor) any {
			use(f, f.at(t, now()+2))
			return f.at(t, now())
		}),
		code("recovery code used", func(f *factor) any { return use(f, f.codes[0]) }),
		code("recovery code in lower case", func(f *factor) any { return strings.ToLower(letterCode(f)) }),
		code("recovery code cut", func(f *factor) any { return f.codes[0][:5] }),
		code("two recovery codes", func(f *factor) any { return f.codes[0] + f.codes[1] }),
		code("the secret", func(f *factor) any { return f.secret }),
		code("cut", func(f *factor) any { return f.code(t)[:5] }),
		code("longer", func(f *factor) any { return f.code(t) + "0" }),
		code("with a space", func(f *factor) any { return f.code(t) + " " }),
		code("wide digits", func(f *factor) any { return wide(f.code(t)) }),
		code("very long", func(*factor) any { return strings.Repeat("Q", 3<<10) }),
		code("somebody else's", func(*factor) any { return other.at(t, now()) }),
		code("somebody else's recovery code", func(*factor) any { return other.codes[0] }),
		{"in the header", func(t *testing.T) *servertest.Answer {
			f := enroll(t, add(t, nil))
			return enter(t, f.id).With(codeHeader, f.code(t)).Post(mfaComplete, M{"code": ""})
		}},
	}
}

// wrongCode has the form of a code, and is none near now.
func wrongCode(t *testing.T, f *factor) string {
	t.Helper()
	near := map[string]bool{}
	for step := now() - 10; step < now()+10; step++ {
		near[f.at(t, step)] = true
	}
	for _, code := range []string{"271828", "314159", "161803", "141421"} {
		if !near[code] {
			return code
		}
	}
	t.Fatal("every code is right")
	return ""
}

// letterCode is a recovery code with a letter in it.
func letterCode(f *factor) string {
	for _, code := range f.codes {
		if strings.ToLower(code) != code {
			return code
		}
	}
	return f.codes[0] + "x"
}

func wide(digits string) string {
	return strings.Map(func(r rune) rune { return r - '0' + '０' }, digits)
}

// forgedSecondJWTs come with a session that needs a token of one signer with
// every request.
func forgedSecondJWTs(t *testing.T) []attempt {
	required, _ := target(t, "ES256")
	other, _ := target(t, "ES256")
	policy := addPolicy(t, func(_, secondary M) { secondary["requireExtJwtSigner"] = required.id })
	id := add(t, M{"authPolicyId": policy})
	stranger := add(t, nil)
	good := required.token(t, M{"sub": id})
	use := func(name string, headers ...string) attempt {
		return attempt{name, func(t *testing.T) *servertest.Answer {
			c := enter(t, id)
			c.With("Authorization", "Bearer "+good).Get("current-identity").Want(http.StatusOK)
			return c.With("Authorization", headers...).Get("current-identity")
		}}
	}
	return []attempt{
		use("none the second time"),
		use("for another identity", "Bearer "+required.token(t, M{"sub": stranger})),
		use("of another signer", "Bearer "+other.token(t, M{"sub": id})),
		use("of the signer of the login", "Bearer "+house(t).token(t, M{"sub": id})),
		use("expired", "Bearer "+required.token(t, M{"sub": id, "exp": 1})),
		use("for another audience", "Bearer "+required.token(t, M{"sub": id, "aud": "x"})),
		use("without a subject", "Bearer "+required.token(t, M{"sub": nil})),
		use("unsigned", "Bearer "+good[:strings.LastIndex(good, ".")+1]),
		use("twice", "Bearer "+good, "Bearer "+good),
		use("lower-case scheme", "bearer "+good),
		{"without a session", func(t *testing.T) *servertest.Answer {
			return shared.Nobody(t).With("Authorization", "Bearer "+good).Get("current-identity")
		}},
		{"with somebody else's session", func(t *testing.T) *servertest.Answer {
			also := enter(t, add(t, M{"authPolicyId": policy}))
			return also.With("Authorization", "Bearer "+good).Get("current-identity")
		}},
	}
}
