package tunneler

import (
	"errors"
	"fmt"
	"time"

	"netkeep.internal/internal/client/sdk"
)

// endpoint is a configuration of type host.v1: what a service leads to. Each of
// protocol, address and port is fixed, or is what the dialer says, within what
// is allowed.
type endpoint struct {
	Protocol          string      `json:"protocol"`
	ForwardProtocol   bool        `json:"forwardProtocol"`
	AllowedProtocols  []string    `json:"allowedProtocols"`
	Address           string      `json:"address"`
	ForwardAddress    bool        `json:"forwardAddress"`
	AllowedAddresses  []string    `json:"allowedAddresses"`
	Port              int         `json:"port"`
	ForwardPort       bool        `json:"forwardPort"`
	AllowedPortRanges []portRange `json:"allowedPortRanges"`
	// AllowedSources are the addresses that a dialer may be seen under.
	AllowedSources []string `json:"allowedSourceAddresses"`
	// Proxy and Translations say how else to reach the server than directly, which
	// this tunneler does not.
	Proxy        *struct{}   `json:"proxy"`
	Translations []*struct{} `json:"forwardAddressTranslations"`

	ListenOptions listenOptions `json:"listenOptions"`
	PortChecks    []*checkRule  `json:"portChecks"`
	HTTPChecks    []*checkRule  `json:"httpChecks"`
}

type portRange struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

type listenOptions struct {
	ConnectTimeoutSeconds *int     `json:"connectTimeoutSeconds"`
	ConnectTimeout        duration `json:"connectTimeout"`
	MaxConnections        int      `json:"maxConnections"`
	Identity              string   `json:"identity"`
	BindUsingEdgeIdentity bool     `json:"bindUsingEdgeIdentity"`
	Cost                  *uint16  `json:"cost"`
	Precedence            string   `json:"precedence"`
}

// checkRule is a check of health, of a port or of a page.
type checkRule struct {
	Interval duration `json:"interval"`
	Timeout  duration `json:"timeout"`
	Address  string   `json:"address"`

	URL          string `json:"url"`
	Method       string `json:"method"`
	Body         string `json:"body"`
	ExpectStatus int    `json:"expectStatus"`
	ExpectInBody string `json:"expectInBody"`

	Actions []*actionRule `json:"actions"`
}

type actionRule struct {
	Trigger           string   `json:"trigger"`
	ConsecutiveEvents int      `json:"consecutiveEvents"`
	Duration          duration `json:"duration"`
	Action            string   `json:"action"`
}

// duration is a time such as 5s.
type duration time.Duration

// UnmarshalText reads one.
func (d *duration) UnmarshalText(text []byte) error {
	got, err := time.ParseDuration(string(text))
	*d = duration(got)
	return err
}

// The types of configurations that say what a service leads to.
const (
	typeHostV1 = "host.v1"
	typeHostV2 = "host.v2"
	typeOldest = "ziti-tunneler-server.v1"
)

// endpoints reads what a service leads to; there is none if nothing says so.
func endpoints(s *sdk.Service) ([]*endpoint, error) {
	var v2 struct {
		Terminators []*endpoint `json:"terminators"`
	}
	if ok, err := s.Configured(typeHostV2, &v2); ok || err != nil {
		return v2.Terminators, wrong(typeHostV2, err)
	}
	v1 := &endpoint{}
	if ok, err := s.Configured(typeHostV1, v1); ok || err != nil {
		return []*endpoint{v1}, wrong(typeHostV1, err)
	}
	var oldest struct {
		Protocol string `json:"protocol"`
		Hostname string `json:"hostname"`
		Port     int    `json:"port"`
	}
	if ok, err := s.Configured(typeOldest, &oldest); ok || err != nil {
		if oldest.Protocol == "" {
			oldest.Protocol = "tcp"
		}
		return []*endpoint{{Protocol: oldest.Protocol, Address: oldest.Hostname, Port: oldest.Port}}, wrong(typeOldest, err)
	}
	return nil, nil
}

func wrong(typ string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("its configuration of type %s cannot be understood: %w", typ, err)
}

// check says what keeps an endpoint from being one. A controller of ours lets
// nobody write such a configuration.
func (e *endpoint) check() error {
	switch {
	case e.ForwardProtocol && len(e.AllowedProtocols) == 0:
		return errors.New("forwardProtocol is set and allowedProtocols is empty: nothing would be allowed")
	case e.ForwardAddress && len(e.AllowedAddresses) == 0:
		return errors.New("forwardAddress is set and allowedAddresses is empty: nothing would be allowed")
	case e.ForwardPort && len(e.AllowedPortRanges) == 0:
		return errors.New("forwardPort is set and allowedPortRanges is empty: nothing would be allowed")
	case !e.ForwardProtocol && e.Protocol == "":
		return errors.New("protocol is missing")
	case !e.ForwardAddress && e.Address == "":
		return errors.New("address is missing")
	case !e.ForwardPort && (e.Port < 1 || e.Port > 65535):
		return fmt.Errorf("port %d is none", e.Port)
	case e.Proxy != nil:
		return errors.New("it is to be reached through a proxy, which this tunneler does not do; take proxy out of the configuration, or host the service with another tunneler")
	case len(e.Translations) > 0:
		return errors.New("forwarded addresses are to be translated, which this tunneler does not do; take forwardAddressTranslations out of the configuration, or host the service with another tunneler")
	}
	for _, entry := range e.AllowedSources {
		if !isBlock(entry) {
			return fmt.Errorf("allowedSourceAddresses has %q, which is neither an address nor a block of them", entry)
		}
	}
	for _, c := range e.checks() {
		for _, a := range c.Actions {
			if _, err := a.change(); err != nil {
				return err
			}
		}
		if c.Interval <= 0 || c.Timeout <= 0 {
			return errors.New("a check needs an interval and a timeout")
		}
		if c.Interval < minInterval {
			return fmt.Errorf("a check's interval is %s, and must be at least %s", time.Duration(c.Interval), time.Duration(minInterval))
		}
	}
	return nil
}

// minInterval is how soon a check may follow another: each makes a connection,
// and the server has something else to do.
const minInterval = duration(10 * time.Millisecond)

func (e *endpoint) checks() []*checkRule {
	return append(append([]*checkRule{}, e.PortChecks...), e.HTTPChecks...)
}

// usualConnect is how long a server may take to be connected to: routers wait
// five seconds for a host.
const usualConnect = 5 * time.Second

func (e *endpoint) connectTime() time.Duration {
	if t := time.Duration(e.ListenOptions.ConnectTimeout); t > 0 {
		return t
	}
	if s := e.ListenOptions.ConnectTimeoutSeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return usualConnect
}

// precedences are the words for how a host stands beside others.
var precedences = map[string]sdk.Precedence{"default": sdk.Default, "required": sdk.Required, "failed": sdk.Failed}

// listen is how an endpoint is hosted: as its configuration says, unless the
// identity is told otherwise for this service, and as the identity hosts if
// nothing says anything.
func (e *endpoint) listen(name, serviceID string, h *sdk.Hosting) sdk.ListenOptions {
	o := sdk.ListenOptions{Cost: h.Cost, Precedence: precedences[h.Precedence], Patient: true}
	l := e.ListenOptions
	if l.Cost != nil {
		o.Cost = *l.Cost
	}
	if l.Precedence != "" {
		o.Precedence = precedences[l.Precedence]
	}
	if cost, ok := h.Costs[serviceID]; ok {
		o.Cost = cost
	}
	if p, ok := h.Precedences[serviceID]; ok {
		o.Precedence = precedences[p]
	}
	if o.Instance = instance(l.Identity, name); l.BindUsingEdgeIdentity {
		o.Instance = name
	}
	return o
}
