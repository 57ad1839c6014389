package management

import (
	"slices"
	"testing"
	"time"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/data/state"
	"netkeep.internal/internal/data/store/storetest"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/api"
	"netkeep.internal/internal/web/rest"
)

// TestLong holds what reads or writes all that there is to being allowed the time for it: a
// copy of some gigabytes was refused after that of a request.
func TestLong(t *testing.T) {
	st, err := state.Open(t.Context(), storetest.NewMemory(), model.All, state.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	a := &rest.API{State: st, Name: "edge-management", Root: api.ManagementRoot, Groups: api.Groups, Shared: &rest.Shared{}}
	Mount(a, &api.Service{Specs: &api.Specs{}, Sessions: &authn.APISessions{Now: time.Now}})
	var long []string
	for _, op := range a.Operations() {
		if op.Long {
			long = append(long, op.Name)
		}
	}
	slices.Sort(long)
	if want := []string{"createDatabaseSnapshot", "verifyAuditEntries", "verifyDatabaseSnapshot"}; !slices.Equal(long, want) {
		t.Errorf("those that may take long are %v, want %v", long, want)
	}
}
