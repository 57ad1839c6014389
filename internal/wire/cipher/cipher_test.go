package cipher

import (
	"bytes"
	"crypto/ecdh"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func pairOf(t testing.TB, secret string) *Pair {
	t.Helper()
	private, err := ecdh.X25519().NewPrivateKey(unhex(t, secret))
	if err != nil {
		t.Fatal(err)
	}
	return &Pair{private, private.PublicKey().Bytes()}
}

// What libsodium 1.0.18 makes of two pairs: crypto_kx_client_session_keys.
const (
	dialerSecret = "cb2f5160fc1f7e05a55ef49d340b48da2e5a78099d53393351cd579dd42503d6"
	dialerPublic = "0e0216223f147143d32615a91189c288c1728cba3cc5f9f621b1026e03d83129"
	hostSecret   = "20f01c2c9470650a95375bb28254ac56fa844bf8d663a4ffb10273fca29481b9"
	hostPublic   = "99f4674ecc87c0b8e712f192b8f49e7442a9376b4875967ababa28471019a93e"
	toDialer     = "59f8af2a2061b2e35fd1cbfb708efd27a85c9924e6b83932e8a67c901a9998cb"
	toHost       = "17821f6861b0f9ac897981c01cca46b711a0afd09010d3694895333903865af2"
	streamHeader = "6465666768696a6b6c6d6e6f707172737475767778797a7b"
)

// agreed returns the keys of both ends.
func agreed(t testing.TB) (dialer, host *Keys) {
	t.Helper()
	d, h := pairOf(t, dialerSecret), pairOf(t, hostSecret)
	dialer, err := d.Dialer(h.Public())
	if err != nil {
		t.Fatal(err)
	}
	if host, err = h.Host(d.Public()); err != nil {
		t.Fatal(err)
	}
	return dialer, host
}

func TestExchange(t *testing.T) {
	dialer, host := agreed(t)
	for _, test := range []struct {
		name string
		got  []byte
		want string
	}{
		{"the dialer's public key", pairOf(t, dialerSecret).Public(), dialerPublic},
		{"the host's public key", pairOf(t, hostSecret).Public(), hostPublic},
		{"what the dialer sends with", dialer.send[:], toHost},
		{"what the dialer receives with", dialer.receive[:], toDialer},
		{"what the host sends with", host.send[:], toDialer},
		{"what the host receives with", host.receive[:], toHost},
	} {
		if got := hex.EncodeToString(test.got); got != test.want {
			t.Errorf("%s is %s, want %s", test.name, got, test.want)
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 31), make([]byte, 32), make([]byte, 33)} {
		if _, err := pairOf(t, hostSecret).Host(bad); !errors.Is(err, ErrKey) {
			t.Errorf("a public key of %d zeros: %v", len(bad), err)
		}
	}
}

// sealed are messages in the order in which libsodium sealed them, from dialer
// to host. Before one of them its counter was set to the last number.
var sealed = []struct {
	plain string
	tag   Tag
	last  bool
	want  string
}{
	{"", Message, false, "0eaf12906208931227405e934968425fda"},
	{"hello", Message, false, "0e82147576aabaaa5a2d01d7e0822ec65dc76cb8aa09"},
	{"sixteen bytes ok", Push, false, "01f2eac7d4464d20f6ae78d0f1fdc1043a2cd6ab42401d059606825f068b30567b"},
	{strings.Repeat("x", 79), Message, false, "af73fbdee5cd12a1acfbface46b2f6fdf96e0c1a41e5c3e628a9c54900689998aa5ba2dd481a7af39a6486603327b48d00f083deddccde8d32389f9b16cea37cd49d7a804f4799e2423701d52f8c40fcfd800e029abb99ecd67e50d1058af2f3"},
	{"rekey now", Rekey, false, "80d6d932d7c7cdc19e074abd06df86788199baccf574ee646192"},
	{"after", Message, false, "771a2c8f8a08a135ab941d1c62c42562f05df6619498"},
	{"last", Message, true, "ef1df6b10eeceffaed62be23a7258120ab58ba21cc"},
	{"first again", Message, false, "1fa12cea566ca4796e36ef3f677a480f4d78ee0c9420621d13e68717"},
	{"bye", Final, false, "08aa08dde7d98aecefd3cf87c8f2e9adcc09fe77"},
}

// streams returns both ends of one that has a header.
func streams(t testing.TB, header []byte) (*Sealer, *Opener) {
	t.Helper()
	dialer, host := agreed(t)
	s, err := newState(&dialer.send, header)
	if err != nil {
		t.Fatal(err)
	}
	o, err := host.Opener(header)
	if err != nil {
		t.Fatal(err)
	}
	return &Sealer{*s}, o
}

func TestAsLibsodium(t *testing.T) {
	s, o := streams(t, unhex(t, streamHeader))
	for i, m := range sealed {
		if m.last {
			binary.LittleEndian.PutUint32(s.nonce[:], 1<<32-1)
			binary.LittleEndian.PutUint32(o.nonce[:], 1<<32-1)
		}
		got, err := s.Seal([]byte(m.plain), m.tag)
		if err != nil || hex.EncodeToString(got) != m.want {
			t.Fatalf("message %d is sealed as %x, want %s (%v)", i, got, m.want, err)
		}
		plain, tag, err := o.Open(nil, got)
		if err != nil || string(plain) != m.plain || tag != m.tag {
			t.Fatalf("message %d is opened as %q with tag %d (%v)", i, plain, tag, err)
		}
	}
}

// TestRoundTrip sends any messages, of which one may be changed.
func TestRoundTrip(t *testing.T) {
	dialer, host := agreed(t)
	rapid.Check(t, func(rt *rapid.T) {
		s, header, err := host.Sealer()
		if err != nil {
			rt.Fatal(err)
		}
		o, err := dialer.Opener(header)
		if err != nil {
			rt.Fatal(err)
		}
		messages := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 200), 1, 20).Draw(rt, "messages")
		changed := rapid.IntRange(0, 2*len(messages)).Draw(rt, "changed")
		for i, m := range messages {
			tag := Tag(rapid.IntRange(0, 3).Draw(rt, "tag"))
			box, err := s.Seal(m, tag)
			if err != nil || len(box) != len(m)+Overhead {
				rt.Fatalf("%d bytes are sealed as %d: %v", len(m), len(box), err)
			}
			was := bytes.Clone(box)
			if i == changed {
				at := rapid.IntRange(0, len(box)-1).Draw(rt, "at")
				box[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
				was = bytes.Clone(box)
			}
			plain, got, err := o.Open(nil, box)
			if !bytes.Equal(box, was) {
				rt.Fatal("a message was changed by being opened")
			}
			if i == changed {
				if !errors.Is(err, ErrForged) || plain != nil {
					rt.Fatalf("a changed message: %q, %v", plain, err)
				}
				return
			}
			if err != nil || !bytes.Equal(plain, m) || got != tag {
				rt.Fatalf("opened as %q with tag %d (%v), was %q with %d", plain, got, err, m, tag)
			}
		}
	})
}

// TestRoom opens messages of lengths that processors treat differently, in memory that
// is used again or too short, and forgeries of them.
func TestRoom(t *testing.T) {
	s, o := streams(t, unhex(t, streamHeader))
	room := make([]byte, Room(1<<16))
	for _, size := range []int{0, 1, 8, 128, 448, 512, 520, 1<<15 - 64, 1 << 15, 1 << 16, 1<<16 + 512} {
		plain := make([]byte, size)
		for i := range plain {
			plain[i] = byte(i * size)
		}
		box, err := s.Seal(plain, Message)
		if err != nil {
			t.Fatal(err)
		}
		forged := bytes.Clone(box)
		forged[size/2] ^= 1
		other := *o
		if got, _, err := other.Open(room, forged); !errors.Is(err, ErrForged) || got != nil {
			t.Errorf("%d bytes, of which one was changed: %v", size, err)
		}
		was := bytes.Clone(box)
		got, tag, err := o.Open(room, box)
		if err != nil || tag != Message || !bytes.Equal(got, plain) {
			t.Fatalf("%d bytes are opened as %d others: %v", size, len(got), err)
		}
		if !bytes.Equal(box, was) {
			t.Errorf("a message of %d bytes was changed by being opened", size)
		}
	}
}

// TestOutOfPlace loses a message, repeats one, swaps two and sends them back.
func TestOutOfPlace(t *testing.T) {
	header := unhex(t, streamHeader)
	for name, order := range map[string][]int{"lost": {1}, "repeated": {0, 0}, "swapped": {1, 0}} {
		s, o := streams(t, header)
		var boxes [][]byte
		for i := range 2 {
			box, err := s.Seal([]byte{byte(i)}, Message)
			if err != nil {
				t.Fatal(err)
			}
			boxes = append(boxes, box)
		}
		var err error
		for _, i := range order {
			if _, _, err = o.Open(nil, boxes[i]); err != nil {
				break
			}
		}
		if !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dialer, _ := agreed(t)
	s, header, err := dialer.Sealer()
	if err != nil {
		t.Fatal(err)
	}
	box, err := s.Seal([]byte("mine"), Message)
	if err != nil {
		t.Fatal(err)
	}
	o, err := dialer.Opener(header)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := o.Open(nil, box); !errors.Is(err, ErrForged) {
		t.Errorf("sent back: %v", err)
	}
	if _, err := dialer.Opener(header[1:]); !errors.Is(err, ErrForged) {
		t.Errorf("a short header: %v", err)
	}
}

// FuzzOpen opens anything: nobody without the key makes a message.
func FuzzOpen(f *testing.F) {
	f.Add([]byte{}, 0)
	for i, m := range sealed[:3] {
		f.Add(unhex(f, m.want), i)
	}
	f.Fuzz(func(t *testing.T, box []byte, at int) {
		s, o := streams(t, unhex(t, streamHeader))
		var good []byte
		for range min(max(at, 0), 3) + 1 {
			if good != nil {
				if _, _, err := o.Open(nil, good); err != nil {
					t.Fatal(err)
				}
			}
			var err error
			if good, err = s.Seal([]byte("good"), Message); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := o.Open(nil, box)
		if real := bytes.Equal(box, good) || at <= 0 && hex.EncodeToString(box) == sealed[0].want; (err == nil) != real {
			t.Fatalf("%x: %v", box, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) { eachSize(b, func(b *testing.B, n int) { benchSeal(b, n) }) }
func BenchmarkOpen(b *testing.B) { eachSize(b, func(b *testing.B, n int) { benchOpen(b, n) }) }

func eachSize(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range []int{64, 1000, 1420, 16 << 10, 16<<10 + 1, 64 << 10} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			b.ReportAllocs()
			run(b, n)
		})
	}
}

func benchSeal(b *testing.B, n int) {
	s, _ := streams(b, unhex(b, streamHeader))
	plain := make([]byte, n)
	for b.Loop() {
		if _, err := s.Seal(plain, Message); err != nil {
			b.Fatal(err)
		}
	}
}

// benchOpen opens the first message of a stream again and again.
func benchOpen(b *testing.B, n int) {
	room := make([]byte, Room(n))
	s, o := streams(b, unhex(b, streamHeader))
	box, err := s.Seal(make([]byte, n), Message)
	if err != nil {
		b.Fatal(err)
	}
	start := o.nonce
	for b.Loop() {
		o.nonce = start
		if _, _, err := o.Open(room, box); err != nil {
			b.Fatal(err)
		}
	}
}
