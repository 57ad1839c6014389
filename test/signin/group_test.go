package signin

import (
	"path/filepath"
	"testing"
	"time"
)

// TestLostGroup has somebody use a service by a group, and leave the group: what is connected
// ends at their next login, wherever that is, what the group has nothing to do with goes on, and
// nothing new is connected.
func TestLostGroup(t *testing.T) {
	w := startAlone(t, time.Hour)
	w.signer("Corp", "--enroll-to-token-enabled=true", "--enroll-claims", "sub="+person, "--enroll-attribute-claims-selector", "/realm_access/roles", "--enroll-attribute-prefix", "corp:")
	w.serve()
	w.good("admin", "create", "service", "notes", "--configs", "here")
	w.good("admin", "create", "service-policy", "hosts notes", "--type", "Bind", "--identity-roles", "#servers", "--service-roles", "@notes")
	w.good("admin", "create", "service-policy", "ops dials", "--type", "Dial", "--identity-roles", "#corp:ops", "--service-roles", "@wiki")
	w.good("admin", "create", "service-policy", "eng dials", "--type", "Dial", "--identity-roles", "#corp:eng-web", "--service-roles", "@notes")
	ca, wiki, notes := filepath.Join(w.data(), "pki", "root.crt"), freePort(t), freePort(t)
	tunnel := w.command("ann", true, "tunnel", "proxy", "--sso", w.address, "--ca", ca, "--poll", "500ms", "wiki:"+wiki, "notes:"+notes)
	tunnel.says(`an identity is in use`)
	lost, ofWiki := dial(t, wiki)
	kept, ofNotes := dial(t, notes)
	w.p.store.groups.Store(&[]string{"eng-web"})
	if text, code := w.signIn("ann-elsewhere"); code != 0 {
		t.Fatalf("%d: %s", code, text)
	}
	for late := time.Now().Add(time.Minute); said(lost, ofWiki, "still there") == nil; <-time.After(50 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("it goes on for who has left the group\n%s", tunnel.said)
		}
	}
	if err := said(kept, ofNotes, "still there"); err != nil {
		t.Errorf("what another group allows ended: %v\n%s", err, tunnel.said)
	}
	if again, lines, err := attempt(wiki); err == nil {
		if said(again, lines, "back") == nil {
			t.Error("who has left the group connects again")
		}
		_ = again.Close()
	}
}
