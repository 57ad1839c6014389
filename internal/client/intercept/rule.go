package intercept

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The types of configurations that say where a service is reached.
const (
	Type    = "intercept.v1"
	OldType = "ziti-tunneler-client.v1"
)

// The protocols that can be intercepted.
const (
	TCP = "tcp"
	UDP = "udp"
)

// Ports are those from Low to High, both included.
type Ports struct {
	Low  uint16 `json:"low"`
	High uint16 `json:"high"`
}

// String is one port, or two with a hyphen between.
func (p Ports) String() string {
	if p.Low == p.High {
		return strconv.Itoa(int(p.Low))
	}
	return fmt.Sprintf("%d-%d", p.Low, p.High)
}

func (p Ports) width() int { return int(p.High) - int(p.Low) }

// Rule is what one service intercepts. A table keeps it as it is: nobody may
// change one that a table has.
type Rule struct {
	// Service is its name: it decides when nothing else does, and people read it
	// in reports of overlaps.
	Service   string
	Addresses []Address
	Ports     []Ports
	Protocols []string // TCP, UDP
	// Sources are where connections may come from; anywhere, if it is nil.
	Sources []netip.Prefix

	// Identity is the terminator to ask for, and SourceIP the address to be seen
	// under by the server; both may have words in them that stand for something
	// of the connection, and are empty if nothing was said.
	Identity string
	SourceIP string
	// ConnectTimeout is how long a dial may take; 0 if nothing was said.
	ConnectTimeout time.Duration

	// Handle is the caller's: whatever it needs to dial.
	Handle any
}

// Admits reports whether connections of a source are intercepted.
func (r *Rule) Admits(source netip.Addr) bool {
	return r.Sources == nil || slices.ContainsFunc(r.Sources, func(block netip.Prefix) bool {
		return block.Contains(source.Unmap().WithZone(""))
	})
}

// maxAddresses is how many addresses one service may have: each takes memory
// and a route, and who writes configurations is not who runs this machine.
const maxAddresses = 20_000

// Read understands what the configurations of a service say of interception: of
// the newer type if there is one, else of the older. There is no rule if none
// says anything that can be used. Parts that cannot be used are left out, and
// each problem is a sentence about one of them.
func Read(service string, configs map[string]jsontext.Value) (rule *Rule, problems []error) {
	if data, ok := configs[Type]; ok {
		return readNew(service, data)
	}
	data, ok := configs[OldType]
	if !ok {
		return nil, nil
	}
	var old struct {
		Hostname string `json:"hostname"`
		Port     uint16 `json:"port"`
	}
	if err := json.Unmarshal(data, &old); err != nil {
		return nil, []error{wrong(OldType, err)}
	}
	at, err := ReadAddress(old.Hostname)
	if err != nil {
		return nil, []error{fmt.Errorf("hostname of its configuration of type %s cannot be used: %w", OldType, err)}
	}
	return &Rule{Service: service, Addresses: []Address{at}, Ports: []Ports{{old.Port, old.Port}}, Protocols: []string{TCP, UDP}}, nil
}

func wrong(typ string, err error) error {
	return fmt.Errorf("its configuration of type %s cannot be understood: %w", typ, err)
}

func readNew(service string, data jsontext.Value) (*Rule, []error) {
	var is struct {
		Addresses   []string `json:"addresses"`
		PortRanges  []Ports  `json:"portRanges"`
		Protocols   []string `json:"protocols"`
		Sources     []string `json:"allowedSourceAddresses"`
		SourceIP    string   `json:"sourceIp"`
		DialOptions struct {
			Identity              string `json:"identity"`
			ConnectTimeoutSeconds int32  `json:"connectTimeoutSeconds"`
		} `json:"dialOptions"`
	}
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, []error{wrong(Type, err)}
	}
	r := &Rule{Service: service, Identity: is.DialOptions.Identity, SourceIP: is.SourceIP}
	r.ConnectTimeout = time.Duration(max(0, is.DialOptions.ConnectTimeoutSeconds)) * time.Second
	var problems []error
	problem := func(field string, err error) {
		problems = append(problems, fmt.Errorf("%s of its configuration of type %s: %w", field, Type, err))
	}
	if len(is.Addresses) > maxAddresses {
		problem("addresses", fmt.Errorf("there are %d, and only the first %d are used", len(is.Addresses), maxAddresses))
		is.Addresses = is.Addresses[:maxAddresses]
	}
	for _, text := range is.Addresses {
		if a, err := ReadAddress(text); err != nil {
			problem("addresses", err)
		} else {
			r.Addresses = append(r.Addresses, a)
		}
	}
	for _, p := range is.PortRanges {
		if p.Low > p.High {
			problem("portRanges", fmt.Errorf("low is %d and high is %d: there is no port between", p.Low, p.High))
		} else {
			r.Ports = append(r.Ports, p)
		}
	}
	for _, p := range is.Protocols {
		if p != TCP && p != UDP {
			problem("protocols", fmt.Errorf("%s is neither tcp nor udp", quoted(p)))
		} else if !slices.Contains(r.Protocols, p) {
			r.Protocols = append(r.Protocols, p)
		}
	}
	if len(is.Sources) > 0 {
		r.Sources = []netip.Prefix{}
	}
	for _, text := range is.Sources {
		if block, ok := readBlock(text); ok {
			r.Sources = append(r.Sources, block)
		} else if text == "*" {
			r.Sources = append(r.Sources, netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))
		} else {
			problem("allowedSourceAddresses", fmt.Errorf("%s is neither an IP address nor a block of them", quoted(text)))
		}
	}
	if len(r.Addresses) == 0 || len(r.Ports) == 0 || len(r.Protocols) == 0 {
		problem("addresses, portRanges and protocols", errors.New("each needs one that can be used; the service is not intercepted"))
		return nil, problems
	}
	return r, problems
}
