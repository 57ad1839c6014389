package model

import (
	"strings"

	"netkeep.internal/internal/lang/kind"
)

// What a controller makes for the router that runs inside of it.
const (
	InsideRouter        = "local-router" // with -2 and so on after it, if the name is taken
	InsideRouterPolicy  = "everybody uses every router"
	InsideServicePolicy = "every service uses every router"
)

// Inside reports whether a record is called as what a controller makes for the
// router that runs inside of it, as those were known before their records said it.
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

// HasOldDoors reports whether there are policies for the router inside a
// controller of before they said so.
func HasOldDoors(r kind.Reader) bool {
	router, service := oldDoors(r)
	return router != nil || service != nil
}

// MarkOldDoors has them say so, whatever they are called from then on.
func MarkOldDoors(w kind.Writer) error {
	router, service := oldDoors(w)
	if router != nil {
		if err := EdgeRouterPolicies.Edit(w, router.ID, func(p *EdgeRouterPolicy) error { p.Inside = true; return nil }); err != nil {
			return err
		}
	}
	if service == nil {
		return nil
	}
	return ServiceEdgeRouterPolicies.Edit(w, service.ID, func(p *ServiceEdgeRouterPolicy) error { p.Inside = true; return nil })
}

func oldDoors(r kind.Reader) (router *EdgeRouterPolicy, service *ServiceEdgeRouterPolicy) {
	if p, ok := EdgeRouterPolicies.Find(r, "name", InsideRouterPolicy); ok && !p.Inside {
		router = p
	}
	if p, ok := ServiceEdgeRouterPolicies.Find(r, "name", InsideServicePolicy); ok && !p.Inside {
		service = p
	}
	return router, service
}
