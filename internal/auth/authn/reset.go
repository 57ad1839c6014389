package authn

import (
	"context"
	"fmt"

	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
)

// Reset is how the default admin gets back into its network.
type Reset struct {
	// Username is what it is called if it has no password any more.
	Username string
	Password string
	// RemoveFactor takes its second factor away.
	RemoveFactor bool
}

// ResetDone is what a Reset did.
type ResetDone struct {
	ID       string // of the admin
	Username string
	// Created says that there was no default admin, WasDisabled that it was
	// disabled or locked out.
	Created, WasDisabled bool
	// HadFactor says that it had a second factor, which is gone if the reset
	// was to remove it.
	HadFactor bool
	// Policy is the name of the policy that it has now, if its own did not let
	// anybody in with a password alone.
	Policy string
}

// ResetAdmin gives the default admin a new password, whatever stands in its
// way, and ends its sessions: who has them is not known.
func ResetAdmin(ctx context.Context, st *state.State, h *Hasher, r Reset) (done ResetDone, err error) {
	if err := (FirstAdmin{r.Username, r.Password}).CheckLengths(); err != nil {
		return done, err
	}
	hash, err := h.Hash(ctx, Claim{}, r.Password)
	if err != nil {
		return done, err
	}
	by := state.Program("admin reset")
	err = st.Update(ctx, by, func(tx *state.Tx) error {
		done = ResetDone{}
		admin, there := defaultAdmin(tx)
		if !there {
			done.Created = true
			if admin, err = createAdmin(tx); err != nil {
				return err
			}
		}
		done.ID = admin.ID
		if err := done.readmit(tx, admin); err != nil {
			return err
		}
		if done.Username, err = setPassword(tx, admin.ID, r.Username, hash); err != nil {
			return err
		}
		m, has := model.MFAOf(tx, admin.ID)
		if done.HadFactor = has; has && r.RemoveFactor {
			return model.MFAs.Delete(tx, m.ID)
		}
		return nil
	})
	if err != nil {
		return done, err
	}
	return done, (&APISessions{State: st}).EndAll(ctx, by, "identityId", done.ID)
}

// defaultAdmin returns whom the network belongs to.
func defaultAdmin(r kind.Reader) (*model.Identity, bool) {
	for i := range model.Identities.All(r) {
		if i.IsDefaultAdmin {
			return i, true
		}
	}
	return nil, false
}

// createAdmin adds the default admin, without a password.
func createAdmin(tx *state.Tx) (*model.Identity, error) {
	admin := model.Identities.New()
	admin.Name, admin.Type, admin.IsAdmin, admin.IsDefaultAdmin = "Default Admin", "User", true, true
	return admin, model.Identities.Create(tx, admin)
}

// readmit enables the admin, under a policy that takes a password for enough.
// A second factor of its own is asked for in any case.
func (d *ResetDone) readmit(tx *state.Tx, admin *model.Identity) error {
	policy, ok := model.AuthPolicies.Get(tx, admin.AuthPolicyID)
	shut := !ok || !policy.Primary.UPDB.Allowed || policy.Secondary.RequireExtJWTSigner != ""
	if shut {
		rescue, err := model.RescuePolicy(tx)
		if err != nil {
			return err
		}
		policy, d.Policy = rescue, rescue.Name
	}
	return model.Identities.Edit(tx, admin.ID, func(i *model.Identity) error {
		d.WasDisabled = i.Disabled(tx.Now())
		i.DisabledAt, i.DisabledUntil, i.AuthPolicyID = nil, nil, policy.ID
		return nil
	})
}

// setPassword gives an identity a password, and a user name if it has none.
func setPassword(tx *state.Tx, identityID, username, hash string) (string, error) {
	for a := range model.Authenticators.Select(tx, "identityId", identityID) {
		if a.Method == model.MethodUPDB {
			return a.Username, model.Authenticators.Edit(tx, a.ID, func(a *model.Authenticator) error {
				a.SetPassword(hash)
				return nil
			})
		}
	}
	err := model.Authenticators.Create(tx, model.NewPassword(identityID, username, hash))
	if err != nil {
		return "", fmt.Errorf("give the default admin the user name %s: %w; choose another with --admin-username", username, err)
	}
	return username, nil
}
