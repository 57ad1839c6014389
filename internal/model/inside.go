package model

import (
	"strings"

	"netkeep/internal/lang/kind"
)

// What a controller makes for the router that runs inside of it.
const (
	InsideRouter        = "local-router" // with -2 and so on after it, if the name is taken
	InsideRouterPolicy  = "everybody uses every router"
	InsideServicePolicy = "every service uses every router"
)

// Inside reports whether a record is called as what a controller makes for the
// router that runs inside of it. Whoever renames it has made it their own.
func Inside(d *kind.Def, name string) bool {
	switch d {
	case EdgeRouters.Def:
		more, is := strings.CutPrefix(name, InsideRouter)
		number, numbered := strings.CutPrefix(more, "-")
		return is && (more == "" || numbered && number != "" && strings.Trim(number, "0123456789") == "")
	case EdgeRouterPolicies.Def:
		return name == InsideRouterPolicy
	case ServiceEdgeRouterPolicies.Def:
		return name == InsideServicePolicy
	}
	return false
}
