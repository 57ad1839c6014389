package join

import (
	"strings"
	"testing"
	"time"
)

var now = time.Date(2030, 5, 17, 12, 0, 0, 0, time.UTC)

func sample() Token {
	return Token{
		Addresses: []string{"c1.example.org:1280", "[::1]:1280"}, Root: strings.Repeat("ab", 32), Network: strings.Repeat("cd", 32),
		ID: "ABC", Secret: strings.Repeat("0", 64), Made: now, Expires: now.Add(time.Hour),
	}
}

func TestToken(t *testing.T) {
	want := sample()
	got, err := Parse("  " + want.Text() + "\n")
	if err != nil || got.Text() != want.Text() {
		t.Errorf("%+v, %v", got, err)
	}
	for at, ok := range map[time.Time]bool{
		now: true, now.Add(-30 * time.Second): true, now.Add(59 * time.Minute): true,
		now.Add(-2 * time.Minute): false, now.Add(time.Hour): false,
	} {
		if err := want.CheckTime(at); (err == nil) != ok {
			t.Errorf("at %s: %v", at, err)
		}
	}
	if CheckClocks(now, now.Add(50*time.Second)) != nil || CheckClocks(now.Add(2*time.Minute), now) == nil || CheckClocks(now, now.Add(2*time.Minute)) == nil {
		t.Error("clocks are judged wrongly")
	}
}

func TestTokenThatIsNone(t *testing.T) {
	broken := func(change func(*Token)) string {
		token := sample()
		change(&token)
		return token.Text()
	}
	for name, text := range map[string]string{
		"nothing":              "",
		"a word":               "hello",
		"cut":                  sample().Text()[:200],
		"another form":         strings.Replace(sample().Text(), "join-1", "join-2", 1),
		"no address":           broken(func(t *Token) { t.Addresses = nil }),
		"an address with path": broken(func(t *Token) { t.Addresses[0] = "h:1/x" }),
		"no port":              broken(func(t *Token) { t.Addresses[0] = "h" }),
		"no root":              broken(func(t *Token) { t.Root = "" }),
		"no secret":            broken(func(t *Token) { t.Secret = "" }),
		"no life":              broken(func(t *Token) { t.Expires = t.Made }),
		"too long":             tokenMark + strings.Repeat("A", maxToken+1),
	} {
		if token, err := Parse(text); err == nil {
			t.Errorf("%s: %+v", name, token)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample().Text())
	f.Add(tokenMark + "e30")
	f.Fuzz(func(t *testing.T, text string) {
		token, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(token.Text())
		if err != nil || again.Text() != token.Text() {
			t.Errorf("%q reads back as %+v, %v", text, again, err)
		}
	})
}
