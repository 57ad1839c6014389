package remote

import (
	"fmt"
	"net"
	"net/url"
	"strings"
)

// usualPort is where controllers listen.
const usualPort = "1280"

// Address understands what people type for the address of a controller: the
// scheme, the port and a path may be missing or be those of a browser.
func Address(text string) (string, error) {
	text = strings.TrimSpace(text)
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case !ok:
		rest = text
	case scheme != "https" && scheme != "http" && scheme != "tls":
		return "", fmt.Errorf("%q begins with %s://, and controllers speak https; try https://%s", text, scheme, rest)
	}
	// Without a scheme url.Parse would take the host for one.
	at, err := url.Parse("https://" + rest)
	if err != nil || at.Hostname() == "" || at.User != nil || strings.ContainsAny(at.Hostname(), " _") {
		return "", fmt.Errorf("%q is no address of a controller; it looks like https://controller.example.com:1280", text)
	}
	host, port := at.Hostname(), at.Port()
	if port == "" {
		port = usualPort
	}
	return "https://" + net.JoinHostPort(host, port), nil
}
