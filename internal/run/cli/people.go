package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netkeep.internal/internal/client/sdk"
	"netkeep.internal/internal/client/tunneler"
	"netkeep.internal/internal/tool/command"
)

// people are those whom a tunneler acts for who have no file: they sign in.
type people struct {
	at       []string // addresses of controllers
	how      command.SignIn
	trusting command.Trusting
}

func (p *people) flags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&p.at, "sso", nil, "Act for who signs in with an identity provider at the controller of this address, instead of an identity's file; may be given several times.")
	p.how.Flags(flags)
	p.trusting.Flags(flags)
}

// signIn has people sign in before anything else is done, while somebody looks. What they
// have signed in for before is taken up.
func (p *people) signIn(cmd *cobra.Command, env Env, opt *tunneler.Options) error {
	opt.Second = command.SecondOf(env)
	for _, at := range p.at {
		account, err := p.how.Account(cmd, env, at, p.trusting)
		if err != nil {
			return err
		}
		if opt.Accounts == nil {
			opt.Accounts = map[string]*sdk.Account{}
		}
		opt.Accounts[account.Address] = &sdk.Account{Address: account.Address, Others: account.Others, CA: account.CA, Token: account.Token, Left: account.Left}
		opt.Identities = append(opt.Identities, account.Address)
	}
	return nil
}
