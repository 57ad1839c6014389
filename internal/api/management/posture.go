package management

import (
	"net/http"
	"time"

	"netkeep/internal/filter"
	"netkeep/internal/rest"
)

// postureOut is what an identity's devices have reported. Nothing has until
// something is submitted.
type postureOut struct {
	MAC       postureMAC        `json:"mac"`
	Domain    postureDomain     `json:"domain"`
	OS        postureOS         `json:"os"`
	Processes []postureProcess  `json:"processes"`
	Sessions  map[string]string `json:"apiSessionPostureData"`
}

// postureBase is what every report has.
type postureBase struct {
	PostureCheckID string    `json:"postureCheckId"`
	TimedOut       bool      `json:"timedOut"`
	LastUpdatedAt  time.Time `json:"lastUpdatedAt"`
}

type postureMAC struct {
	postureBase
	Addresses []string `json:"addresses"`
}

type postureDomain struct {
	postureBase
	Domain string `json:"domain"`
}

type postureOS struct {
	postureBase
	Type    string `json:"type"`
	Version string `json:"version"`
	Build   string `json:"build"`
}

type postureProcess struct {
	postureBase
	IsRunning          bool     `json:"isRunning"`
	BinaryHash         string   `json:"binaryHash"`
	SignerFingerprints []string `json:"signerFingerprints"`
}

func mountPosture(a *rest.API) {
	op := func(path, name, doc string) rest.Op {
		return rest.Op{Method: http.MethodGet, Path: "/identities/{id}/" + path, Name: name, Tag: "identities", Doc: doc, Auth: rest.Admin}
	}
	rest.Handle(a, op("posture-data", "getIdentityPostureData", "Get what an identity's devices have reported."),
		func(*rest.Call, rest.None) (postureOut, error) { return postureOut{}, nil })
	rest.Handle(a, op("failed-service-requests", "getIdentityFailedServiceRequests", "List an identity's recent requests that posture checks refused."),
		func(*rest.Call, rest.None) (rest.List, error) {
			return rest.List{Page: filter.Page{Limit: filter.DefaultLimit}, Fields: []string{}}, nil
		})
}
