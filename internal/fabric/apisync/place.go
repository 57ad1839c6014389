package apisync

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"netkeep.internal/internal/pki"
	"netkeep.internal/internal/wire/message"
)

// maxListeners is how many protocols a router may offer.
const maxListeners = 16

// place is what a router says of where clients reach it: its host and, by
// protocol, URLs. What cannot be is left out, and wrong says why: everybody who
// may use the router is shown it.
func place(m *message.ClientHello) (host string, urls map[string]string, wrong error) {
	if host = m.Hostname; host != "" {
		if err := checkHost(host); err != nil {
			host, wrong = "", err
		}
	}
	urls = map[string]string{}
	for _, l := range m.Listeners {
		at := l.Advertise
		err := checkHost(at.Hostname)
		switch {
		case err != nil:
		case !isProtocol(at.Protocol):
			err = errors.New("a protocol must be one to 16 small letters and digits")
		case at.Port < 1 || at.Port > 65535:
			err = fmt.Errorf("a port must be 1 to 65535, not %d", at.Port)
		case len(urls) == maxListeners && urls[at.Protocol] == "":
			err = fmt.Errorf("a router may offer %d protocols", maxListeners)
		default:
			urls[at.Protocol] = at.Protocol + "://" + net.JoinHostPort(at.Hostname, strconv.Itoa(int(at.Port)))
		}
		if wrong == nil {
			wrong = err
		}
	}
	return host, urls, wrong
}

// checkHost refuses what is no host name or address.
func checkHost(host string) error {
	switch {
	case len(host) > maxHost:
		return fmt.Errorf("a host name has at most %d characters, not %d", maxHost, len(host))
	case strings.HasPrefix(host, "*") || !pki.ValidName(strings.TrimSuffix(host, ".")):
		return fmt.Errorf("%q is no host name or address", host)
	}
	return nil
}

// maxHost is how long a host name may be.
const maxHost = 255

func isProtocol(s string) bool {
	return len(s) > 0 && len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}
