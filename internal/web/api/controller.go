package api

import (
	"github.com/go-json-experiment/json/jsontext"

	"netkeep.internal/internal/lang/kind"
	"netkeep.internal/internal/model"
	"netkeep.internal/internal/web/rest"
)

// apiAddresses is where the APIs of a controller are, under the names that clients
// look for.
type apiAddresses struct {
	Client     []apiAddress `json:"edge-client" doc:"Where its Client API is."`
	Management []apiAddress `json:"edge-management" doc:"Where its Management API is."`
}

type apiAddress struct {
	URL     string `json:"url" doc:"Address, with the path that all paths of the API begin with."`
	Version string `json:"version" doc:"Version of the API."`
}

var addressesOutput = kind.NewOutput[apiAddresses]()

// ControllerColumns are what answers show of a controller beyond its record.
func ControllerColumns(s *Service) []rest.Derived {
	return []rest.Derived{
		Flag("isOnline", "Whether the controller is there.", func(call *rest.Call, c *model.Controller) bool { return !call.Past() && s.Controllers.Online(c.ID) }),
		{
			Name: "apiAddresses", Doc: "Where its APIs are.", Schema: addressesOutput.Schema(),
			Append: func(dst []byte, _ *rest.Call, rec kind.Record) []byte {
				return append(dst, AddressesOf(rec.(*model.Controller))...)
			},
		},
	}
}

// AddressesOf is where the APIs of a controller are.
func AddressesOf(c *model.Controller) jsontext.Value {
	at := func(address, root string) []apiAddress {
		return []apiAddress{{URL: "https://" + address + root, Version: "v1"}}
	}
	return addressesOutput.Append(nil, &apiAddresses{Client: at(c.Client, ClientRoot), Management: at(c.Management, ManagementRoot)})
}
