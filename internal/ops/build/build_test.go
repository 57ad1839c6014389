package build

import "testing"

// TestRelease has a tag be the release, and nothing that clients could not read as
// numbers.
func TestRelease(t *testing.T) {
	for version, want := range map[string]string{
		"v1.4.2": "v1.4.2", "v12.0.30": "v12.0.30",
		"": Next, "(devel)": Next, "v0.0.0-20261118195159-a202a1247562": Next, "v1.4.3-0.20261118195159-a202a1247562": Next,
		"v1.4.2+dirty": Next, "v2.0.0-rc.1": Next, "v0.9.0": Next,
	} {
		if got := of(version); got != want {
			t.Errorf("%q is the release %s, want %s", version, got, want)
		}
	}
	if !release.MatchString(Version) {
		t.Errorf("this is %s", Version)
	}
}
