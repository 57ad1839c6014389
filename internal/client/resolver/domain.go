package resolver

import (
	"slices"
	"strings"
)

// maxDomains is how many domains a link is told of: systemd-resolved takes no
// more than some hundred, as few as 256 in older versions.
const maxDomains = 256

// domains are those whose names, and all below them, have to be asked for here
// for some names: the names themselves, or domains above them if there are too
// many. A single dot is all there is.
func domains(names []string) []string {
	var all []string
	for _, name := range names {
		all = append(all, strings.TrimPrefix(name, "*."))
	}
	for all = outermost(all); len(all) > maxDomains; {
		// The longest are the least that more is asked for.
		most := 0
		for _, d := range all {
			most = max(most, strings.Count(d, "."))
		}
		if most < 2 { // what is above them is most of the Internet
			return []string{"."}
		}
		for i, d := range all {
			if strings.Count(d, ".") == most {
				_, all[i], _ = strings.Cut(d, ".")
			}
		}
		all = outermost(all)
	}
	return all
}

// outermost are domains without those that are below others.
func outermost(all []string) []string {
	has := map[string]bool{}
	for _, d := range all {
		has[d] = true
	}
	left := slices.DeleteFunc(slices.Clone(all), func(d string) bool {
		for _, rest, ok := strings.Cut(d, "."); ok; _, rest, ok = strings.Cut(rest, ".") {
			if has[rest] {
				return true
			}
		}
		return false
	})
	slices.Sort(left)
	return slices.Compact(left)
}

// below is how many labels a domain has that a name is in, or -1 if it is not.
func below(name, domain string) int {
	name, domain = strings.ToLower(strings.TrimSuffix(name, ".")), strings.ToLower(strings.TrimSuffix(domain, "."))
	switch {
	case domain == "":
		return 0
	case name == domain || strings.HasSuffix(name, "."+domain):
		return 1 + strings.Count(domain, ".")
	}
	return -1
}
