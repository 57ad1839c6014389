package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"netkeep.internal/internal/client/remote"
	"netkeep.internal/internal/tool/profile"
)

// TestSigner shows which word of a login names whom to sign in with, and which the
// controller.
func TestSigner(t *testing.T) {
	known := &profile.Book{Current: "work", Profiles: map[string]profile.Profile{"work": {Account: remote.Account{Address: "https://office:1280"}}}}
	none := &profile.Book{}
	for _, one := range []struct {
		line   string
		book   *profile.Book
		on     bool
		signer string
		at     string
		fails  string
	}{
		{line: "", book: known},
		{line: "net.example", book: known, at: "net.example"},
		{line: "--sso", book: known, on: true},
		{line: "--sso=true", book: known, on: true},
		{line: "--sso=false", book: known},
		{line: "--sso=Corp", book: known, on: true, signer: "Corp"},
		{line: "--sso --signer Corp", book: known, on: true, signer: "Corp"},
		{line: "--sso=Corp --signer Corp", book: known, on: true, signer: "Corp"},
		{line: "--sso=Corp --signer Lab", book: known, on: true, fails: "leave one of them out"},
		{line: "--sso Corp", book: known, on: true, signer: "Corp"},
		{line: "--sso Corp", book: none, on: true, at: "Corp"},
		{line: "--sso office", book: known, on: true, at: "office"},
		{line: "localhost --sso", book: known, on: true, at: "localhost"},
		{line: "https://net.example:1280 --sso", book: known, on: true, at: "https://net.example:1280"},
		{line: "https://net.example:1280 --sso Corp", book: known, on: true, signer: "Corp", at: "https://net.example:1280"},
		{line: "--sso Corp https://net.example:1280", book: none, on: true, signer: "Corp", at: "https://net.example:1280"},
		{line: "net.example --sso corp.example", book: known, on: true, signer: "corp.example", at: "net.example"},
		{line: "net.example --sso=Corp Lab", book: known, on: true, fails: "no place for"},
		{line: "net.example Corp", book: known, fails: "--sso=SIGNER"},
	} {
		var f loginFlags
		flags := pflag.NewFlagSet("login", pflag.ContinueOnError)
		f.sso.flag(flags, "sso", "")
		f.sign.Flags(flags)
		if err := flags.Parse(strings.Fields(one.line)); err != nil {
			t.Fatal(err)
		}
		args, err := f.signer(flags.Args(), one.book)
		if one.fails != "" {
			if err == nil || !strings.Contains(err.Error(), one.fails) {
				t.Errorf("login %s: %v", one.line, err)
			}
			continue
		}
		if err != nil || f.sso.on != one.on || f.sign.Signer != one.signer || !slices.Equal(args, strings.Fields(one.at)) {
			t.Errorf("login %s: sso %v, signer %q, at %q, %v", one.line, f.sso.on, f.sign.Signer, args, err)
		}
	}
}
