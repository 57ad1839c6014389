package api

import (
	"net/http"

	"netkeep/internal/ops/build"
	"netkeep/internal/web/rest"
)

// versionOut is what there is to say about the controller.
type versionOut struct {
	Version        string      `json:"version"`
	Revision       string      `json:"revision"`
	BuildDate      string      `json:"buildDate"`
	RuntimeVersion string      `json:"runtimeVersion"`
	APIVersions    apiVersions `json:"apiVersions"`
}

// apiVersions says where each API is. Older clients look for "edge".
type apiVersions struct {
	Edge       apiVersion `json:"edge"`
	Client     apiVersion `json:"edge-client"`
	Management apiVersion `json:"edge-management"`
}

type apiVersion struct {
	V1 apiPlace `json:"v1"`
}

type apiPlace struct {
	Path        string   `json:"path"`
	APIBaseURLs []string `json:"apiBaseUrls"`
	Version     string   `json:"version"`
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
	version := func(*rest.Call, rest.None) (versionOut, error) { return out, nil }
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/version", Name: "listVersion", Tag: "informational",
		Doc: "Tell which controller this is and where its APIs are.", Auth: rest.Anonymous,
	}, version)
	rest.Handle(a, rest.Op{
		Method: http.MethodGet, Path: "/", Name: "listRoot", Tag: "informational",
		Doc: "Tell which controller this is and where its APIs are.", Auth: rest.Anonymous,
	}, version)
}
