package cipher

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"

	"golang.org/x/crypto/chacha20"
	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/crypto/poly1305" //lint:ignore SA1019 the stream pads what it authenticates in a way of its own
)

const (
	// HeaderSize is the length of what a stream begins with.
	HeaderSize = 24
	// Overhead is by how much a sealed message is longer.
	Overhead = 1 + poly1305.TagSize
)

// Tag is what a message is to its stream.
type Tag byte

// The tags.
const (
	Message Tag = 0
	Push    Tag = 1 // the end of a set of messages
	Rekey   Tag = 2 // another key for what follows
	Final   Tag = Push | Rekey
)

// ErrForged says that a message is not what the other end sent at this place.
var ErrForged = errors.New("cipher: a message was changed, lost or moved on its way")

// state is what both ends of a stream have in common. Messages are numbered by
// the counter at the nonce's front, and what follows it takes in the
// authenticator of each message, so that none can be left out or moved.
type state struct {
	key   [KeySize]byte
	nonce [chacha20.NonceSize]byte
	aead  cipher.AEAD // with key
}

const counterSize = 4

func newState(key *[KeySize]byte, header []byte) (*state, error) {
	derived, err := chacha20.HChaCha20(key[:], header[:16])
	if err != nil {
		return nil, err
	}
	s := &state{key: [KeySize]byte(derived)}
	copy(s.nonce[counterSize:], header[16:])
	return s, s.restart()
}

// restart begins to count with the key that there is now.
func (s *state) restart() (err error) {
	binary.LittleEndian.PutUint32(s.nonce[:], 1)
	s.aead, err = chacha20poly1305.New(s.key[:])
	return err
}

// next goes on behind a message with the authenticator.
func (s *state) next(tag Tag, mac []byte) error {
	subtle.XORBytes(s.nonce[counterSize:], s.nonce[counterSize:], mac[:8])
	n := binary.LittleEndian.Uint32(s.nonce[:]) + 1
	binary.LittleEndian.PutUint32(s.nonce[:], n)
	if tag&Rekey == 0 && n != 0 {
		return nil
	}
	var fresh [KeySize + 8]byte
	copy(fresh[:], s.key[:])
	copy(fresh[KeySize:], s.nonce[counterSize:])
	c, err := chacha20.NewUnauthenticatedCipher(s.key[:], s.nonce[:])
	if err != nil {
		return err
	}
	c.XORKeyStream(fresh[:], fresh[:])
	copy(s.key[:], fresh[:])
	copy(s.nonce[counterSize:], fresh[KeySize:])
	return s.restart()
}

// lead is the block that stands before each message: its first byte is the tag,
// and of its sealed form only that one travels.
const lead = 64

// The stream encrypts a message behind its lead exactly as ChaCha20-Poly1305
// does (the key of the authenticator is the first block of the key stream, the
// lead takes the second), for which there is fast code. It also authenticates
// alike, except for the zeros behind a message: there are as many as its last
// block has bytes, not as many as it lacks.
func paddedAlike(n int) bool { return n%8 == 0 }

// authenticate returns what a message is authenticated by, where that differs.
// sealed includes the lead.
func (s *state) authenticate(mac *[poly1305.TagSize]byte, key *[32]byte, sealed []byte) {
	var end [32]byte
	pad := len(sealed) % 16
	binary.LittleEndian.PutUint64(end[pad+8:], uint64(len(sealed)))
	m := poly1305.New(key)
	_, _ = m.Write(sealed)
	_, _ = m.Write(end[:pad+16])
	m.Sum(mac[:0])
}

// first returns the first two blocks of the key stream for the next message.
func (s *state) first() (blocks [2 * lead]byte, err error) {
	c, err := chacha20.NewUnauthenticatedCipher(s.key[:], s.nonce[:])
	if err == nil {
		c.XORKeyStream(blocks[:], blocks[:])
	}
	return blocks, err
}

// Sealer seals the messages of one direction. It is not for concurrent use.
type Sealer struct{ state }

// Sealer begins a stream to the other end, and returns the header that must be
// sent before its messages.
func (k *Keys) Sealer() (*Sealer, []byte, error) {
	header := make([]byte, HeaderSize)
	if _, err := rand.Read(header); err != nil {
		return nil, nil, err
	}
	s, err := newState(&k.send, header)
	if err != nil {
		return nil, nil, err
	}
	return &Sealer{*s}, header, nil
}

// Seal returns a message sealed, in memory of its own.
func (s *Sealer) Seal(plain []byte, tag Tag) ([]byte, error) {
	n := lead + len(plain)
	buf := make([]byte, n, n+poly1305.TagSize)
	buf[0] = byte(tag)
	copy(buf[lead:], plain)
	buf = s.aead.Seal(buf[:0], s.nonce[:], buf, nil)
	mac := buf[n:]
	if !paddedAlike(len(plain)) {
		blocks, err := s.first()
		if err != nil {
			return nil, err
		}
		s.authenticate((*[poly1305.TagSize]byte)(mac), (*[32]byte)(blocks[:32]), buf[:n])
	}
	buf[lead-1] = buf[0]
	return buf[lead-1:], s.next(tag, mac)
}

// Opener opens the messages of one direction. It is not for concurrent use.
type Opener struct{ state }

// Opener begins to read the other end's stream, which has the header.
func (k *Keys) Opener(header []byte) (*Opener, error) {
	if len(header) != HeaderSize {
		return nil, ErrForged
	}
	s, err := newState(&k.receive, header)
	if err != nil {
		return nil, err
	}
	return &Opener{*s}, nil
}

// Open returns what is in a sealed message, in room if it is long enough (Room says how
// long) and else in memory of its own, and leaves the message as it is. After an error
// the stream cannot go on.
func (o *Opener) Open(room, sealed []byte) (plain []byte, tag Tag, err error) {
	size := len(sealed) - Overhead
	if size < 0 {
		return nil, 0, ErrForged
	}
	blocks, err := o.first()
	if err != nil {
		return nil, 0, err
	}
	n := lead + size
	buf := room[:0]
	if cap(buf) < n+poly1305.TagSize {
		buf = make([]byte, 0, n+poly1305.TagSize)
	}
	buf = append(append(buf, blocks[lead:]...), sealed[1:]...)
	tag = Tag(buf[0] ^ sealed[0])
	buf[0] = sealed[0]
	mac := sealed[1+size:]
	if paddedAlike(size) {
		_, err = o.aead.Open(buf[:0], o.nonce[:], buf, nil)
		settle()
		if err != nil {
			return nil, 0, ErrForged
		}
		return buf[lead:n:n], tag, o.next(tag, mac)
	}
	var want [poly1305.TagSize]byte
	o.authenticate(&want, (*[32]byte)(blocks[:32]), buf[:n])
	if subtle.ConstantTimeCompare(want[:], mac) == 0 {
		return nil, 0, ErrForged
	}
	// To seal it once more takes the key stream off again.
	buf = o.aead.Seal(buf[:0], o.nonce[:], buf[:n], nil)
	return buf[lead:n:n], tag, o.next(tag, mac)
}

// Room is how much memory a message takes that is opened.
func Room(size int) int { return lead + size + poly1305.TagSize }

var alike [2][2 * lead]byte

// settle follows on what was opened: where nothing is left behind the last 512 bytes of
// a message, that leaves processors with AVX2 in a state in which what comes next is a
// hundred times slower. To compare this much brings them out of it.
func settle() {
	if !bytes.Equal(alike[0][:], alike[1][:]) {
		panic("unreachable")
	}
}
