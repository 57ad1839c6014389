package intercept

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// Address is one of those that a service is reached under: a name, all names
// below a domain, or a block of IP addresses. It is comparable.
type Address struct {
	name   string       // plain, as Plain returns it; that of the domain if wild
	wild   bool         // all names below it, and not the domain itself
	prefix netip.Prefix // masked, if there is no name
}

// Prefix is the block of IP addresses, if the address is one.
func (a Address) Prefix() (block netip.Prefix, ok bool) { return a.prefix, a.name == "" }

// String is the address as configurations write it.
func (a Address) String() string {
	switch {
	case a.wild:
		return "*." + a.name
	case a.name != "":
		return a.name
	case a.prefix.IsSingleIP():
		return a.prefix.Addr().String()
	}
	return a.prefix.String()
}

// maxEcho is how much of a text an error repeats.
const maxEcho = 80

// quoted is a text of a configuration for an error.
func quoted(text string) string {
	if len(text) > maxEcho {
		return fmt.Sprintf("%.*q…", maxEcho, text)
	}
	return fmt.Sprintf("%q", text)
}

// ReadAddress understands an entry of a configuration's addresses.
func ReadAddress(text string) (Address, error) {
	if text == "*" {
		return Address{}, errors.New(`"*" is every name there is, which no tunneler can answer for: name a domain, such as "*.corp.example"`)
	}
	if strings.HasPrefix(text, "$") {
		return Address{}, fmt.Errorf("%s stands for nothing that is known here", quoted(text))
	}
	if block, ok := readBlock(text); ok {
		return Address{prefix: block}, nil
	}
	domain, wild := strings.CutPrefix(text, "*.")
	name, err := Plain(domain)
	if err != nil {
		return Address{}, fmt.Errorf("%s is neither an IP address, nor a block of them, nor a name: %w", quoted(text), err)
	}
	return Address{name: name, wild: wild}, nil
}

// readBlock understands an IP address or a block of them, of IPv4 however it is
// written.
func readBlock(text string) (netip.Prefix, bool) {
	if strings.Contains(text, "%") { // a zone means something on one machine alone
		return netip.Prefix{}, false
	}
	block, err := netip.ParsePrefix(text)
	if err != nil {
		ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
		if err != nil {
			return netip.Prefix{}, false
		}
		block = netip.PrefixFrom(ip, ip.BitLen())
	}
	if block.Addr().Is4In6() && block.Bits() >= 96 {
		block = netip.PrefixFrom(block.Addr().Unmap(), block.Bits()-96)
	}
	return block.Masked(), true
}

const (
	maxName  = 253
	maxLabel = 63
)

// toASCII turns names of other scripts into those that travel. Underscores are
// for check to judge, which allows them.
var toASCII = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

// Plain is a host name as it is compared: of ASCII characters, small ones, and
// without a dot at its end.
func Plain(text string) (string, error) {
	text = strings.TrimSuffix(text, ".")
	if plain, ok := plainASCII(text); ok {
		return plain, nil
	}
	if len(text) > 4*maxName {
		return "", fmt.Errorf("it is longer than %d characters", maxName)
	}
	ascii, err := toASCII.ToASCII(text)
	if err != nil {
		return "", errors.New("it has characters that no name has")
	}
	plain, ok := plainASCII(strings.TrimSuffix(ascii, "."))
	if !ok {
		return "", explain(ascii)
	}
	return plain, nil
}

// plainASCII is Plain for names without other characters, which is nearly all;
// it allocates nothing for one that is plain already.
func plainASCII(s string) (string, bool) {
	if len(s) == 0 || len(s) > maxName {
		return "", false
	}
	large, digits, start := false, true, 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '.' {
			if i == start || i-start > maxLabel || s[start] == '-' || s[i-1] == '-' {
				return "", false
			}
			if i < len(s) {
				start, digits = i+1, true
			}
			continue
		}
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', c == '-', c == '_':
			digits = false
		case '0' <= c && c <= '9':
		case 'A' <= c && c <= 'Z':
			large, digits = true, false
		default:
			return "", false
		}
	}
	if digits { // the last label: 10.1 and 1.2.3.400 are mistyped addresses
		return "", false
	}
	if large {
		s = strings.ToLower(s)
	}
	return s, true
}

// explain says why a text is no name.
func explain(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	if len(s) > maxName {
		return fmt.Errorf("it is longer than %d characters", maxName)
	}
	for label := range strings.SplitSeq(s, ".") {
		switch {
		case label == "":
			return errors.New("between two of its dots, or before the first, is nothing")
		case len(label) > maxLabel:
			return fmt.Errorf("%s is longer than %d characters", quoted(label), maxLabel)
		case label[0] == '-' || label[len(label)-1] == '-':
			return fmt.Errorf("%s begins or ends with a hyphen", quoted(label))
		case strings.Trim(label, "-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
			return errors.New("it has characters that no name has")
		}
	}
	return errors.New("its last part is a number")
}
