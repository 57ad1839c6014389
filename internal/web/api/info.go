package api

import (
	"net/http"

	"netkeep.internal/internal/auth/authn"
	"netkeep.internal/internal/ops/build"
	"netkeep.internal/internal/web/rest"
)

// versionOut is what there is to say about the controller.
type versionOut struct {
	Version        string      `json:"version" doc:"Version of the controller."`
	Revision       string      `json:"revision" doc:"Commit from which the controller was built."`
	BuildDate      string      `json:"buildDate" doc:"When that commit was made."`
	RuntimeVersion string      `json:"runtimeVersion" doc:"Version of Go that the controller was built with."`
	APIVersions    apiVersions `json:"apiVersions" doc:"Where the APIs are, by name and version."`
	// Newer clients walk through it without a look whether it is there.
	Capabilities []string `json:"capabilities" doc:"What the controller can do beyond the contract, in words that clients look for: OIDC_AUTH if they may log in by OpenID Connect; HA_CONTROLLER if clients are to be told that there are several controllers."`
}

// apiVersions says where each API is. Older clients look for "edge".
type apiVersions struct {
	Edge       apiVersion `json:"edge" doc:"The Client API under the name that older clients know."`
	Client     apiVersion `json:"edge-client" doc:"The Client API."`
	Management apiVersion `json:"edge-management" doc:"The Management API."`
	// Clients in C log in by OpenID Connect if it is named here.
	OIDC *apiVersion `json:"edge-oidc" kind:"omit" doc:"Logins by OpenID Connect; left out where there are none."`
}

type apiVersion struct {
	V1 apiPlace `json:"v1" doc:"Its only version."`
}

type apiPlace struct {
	Path        string   `json:"path" doc:"Path that all paths of the API begin with."`
	APIBaseURLs []string `json:"apiBaseUrls" doc:"Addresses under which the API is reached."`
	Version     string   `json:"version" doc:"Version of the contract that the API keeps."`
}

// MountInfo adds what every API tells of the controller.
func MountInfo(a *rest.API, s *Service) {
	mountInfo(a, s)
	mountSpecs(a, s)
}

func mountInfo(a *rest.API, s *Service) {
	info := build.Read()
	place := func(address, root string) apiVersion {
		return apiVersion{apiPlace{Path: root, APIBaseURLs: []string{"https://" + address + root}, Version: Version}}
	}
	client := place(s.Address, ClientRoot)
	out := versionOut{
		Version: info.Version, Revision: info.Revision, BuildDate: info.Date, RuntimeVersion: info.Runtime,
		APIVersions: apiVersions{Edge: client, Client: client, Management: place(s.ManagementAddress, ManagementRoot)},
	}
	offering, oidc := out, place(s.Address, authn.IssuerPath)
	offering.APIVersions.OIDC, offering.Capabilities = &oidc, []string{"OIDC_AUTH"}
	if s.Announce {
		out.Capabilities, offering.Capabilities = append(out.Capabilities, "HA_CONTROLLER"), append(offering.Capabilities, "HA_CONTROLLER")
	}
	version := func(*rest.Call, rest.None) (versionOut, error) {
		if s.Offers != nil && s.Offers() {
			return offering, nil
		}
		return out, nil
	}
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/version", Name: "listVersion", Tag: "informational",
		Doc: "Tell which controller this is and where its APIs are.", Auth: rest.Anonymous,
	}, version)
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/", Name: "listRoot", Tag: "informational",
		Doc: "Tell which controller this is and where its APIs are.", Auth: rest.Anonymous,
	}, version)
}
