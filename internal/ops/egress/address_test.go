package egress

import (
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestPlace(t *testing.T) {
	for zone, addrs := range map[zone][]string{
		refused: {
			"0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0",
			"169.254.0.1", "169.254.169.254", "169.254.170.2", "169.254.255.255", "fe80::1", "fe80::1%eth0", "febf::1",
			"100.100.100.200", "168.63.129.16", "192.0.0.192",
			"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
			"224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1%eth0",
			"255.255.255.255",
			"::ffff:169.254.169.254", "::ffff:a9fe:a9fe%eth0", "::169.254.169.254",
			"64:ff9b::169.254.169.254", "64:ff9b::6464:64c8", "64:ff9b::224.0.0.1", "64:ff9b::",
			"64:ff9b:1::8.8.8.8", "64:ff9b:1:ffff::1",
			"2002:a9fe:a9fe::1", "2002:6464:64c8:1::", "2002::1",
			"2001:0:4136:e378:8000:63bf:5601:5601",
		},
		inner: {
			"127.0.0.1", "127.255.255.255", "::1", "::1%lo", "::ffff:127.0.0.1", "::7f00:1", "64:ff9b::127.0.0.1", "2002:7f00:1::",
			"10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1", "64:ff9b::10.0.0.1", "2002:c0a8:101::1",
			"2001:0:4136:e378:8000:63bf:f5ff:fffe",
			"100.64.0.1", "100.127.255.255", "192.0.0.1", "198.18.0.1", "198.19.255.255", "240.0.0.1", "255.255.255.254",
			"fc00::1", "fd00::1", "fdff::1%eth0", "fec0::1", "feff::1",
		},
		public: {
			"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "128.0.0.1",
			"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0",
			"198.17.255.255", "198.20.0.0", "203.0.113.1", "223.255.255.255",
			"2001:db8::1", "2606:4700::1111", "2001:1::1", "fbff::1", "64:ff9b::8.8.8.8", "64:ff9a::169.254.169.254", "2002:808:808::1",
			"::ffff:8.8.8.8", "::8.8.8.8",
		},
	} {
		for _, a := range addrs {
			if got, name := place(plain(netip.MustParseAddr(a))); got != zone || (name == "") != (zone == public) {
				t.Errorf("%s is in zone %d (%q), want %d", a, got, name, zone)
			}
		}
	}
	if got, _ := place(plain(netip.Addr{})); got != refused {
		t.Errorf("no address is in zone %d, want %d", got, refused)
	}
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		addr       string
		publicOnly bool
		ok         bool
	}{
		{"203.0.113.1", false, true},
		{"203.0.113.1", true, true},
		{"10.0.0.1", false, true},
		{"10.0.0.1", true, false},
		{"::1", false, true},
		{"::1", true, false},
		{"169.254.169.254", false, false},
		{"169.254.169.254", true, false},
	} {
		err := judge(netip.MustParseAddr(tt.addr), tt.publicOnly)
		if ok := err == nil; ok != tt.ok || !ok && !errors.Is(err, ErrAddress) {
			t.Errorf("judge(%s, %t) = %v", tt.addr, tt.publicOnly, err)
		}
	}
}

// The standard library's own view of addresses is the model: whatever it calls
// special is not public, and every way to write an IPv4 address within IPv6 is
// judged as that address.
func TestPlaceAgreesWithNetip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "IPv4"))
		b[0] = rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0, 10, 100, 127, 169, 172, 192, 198, 224, 240, 255})).Draw(t, "first byte")
		b[1] = rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0, 15, 16, 18, 31, 32, 64, 168, 254, 255})).Draw(t, "second byte")
		v4 := netip.AddrFrom4(b)
		want, _ := place(v4)
		checkModel(t, v4, want)
		flipped := [4]byte{^b[0], ^b[1], ^b[2], ^b[3]}
		for name, form := range map[string]netip.Addr{
			"mapped": netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: b[0], 13: b[1], 14: b[2], 15: b[3]}),
			"nat64":  netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]}),
			"6to4":   netip.AddrFrom16([16]byte{0x20, 0x02, b[0], b[1], b[2], b[3]}),
			"teredo": netip.AddrFrom16([16]byte{0x20, 0x01, 12: flipped[0], 13: flipped[1], 14: flipped[2], 15: flipped[3]}),
		} {
			if got, _ := place(plain(form.WithZone("eth0"))); got != want {
				t.Fatalf("%s form %s of %s is in zone %d, want %d", name, form, v4, got, want)
			}
		}
		long := [16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "IPv6"))
		long[0] = rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0, 0x20, 0xfc, 0xfd, 0xfe, 0xff})).Draw(t, "first byte")
		v6 := netip.AddrFrom16(long)
		got, _ := place(plain(v6))
		checkModel(t, plain(v6), got)
	})
}

func checkModel(t *rapid.T, a netip.Addr, got zone) {
	least := public
	switch {
	case a.IsUnspecified(), a.IsLinkLocalUnicast(), a.IsMulticast():
		least = refused
	case a.IsLoopback(), a.IsPrivate():
		least = inner
	}
	if got < least {
		t.Fatalf("%s is in zone %d, want at least %d", a, got, least)
	}
}
