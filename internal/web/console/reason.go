package console

// reasonPages are the pages that tell who may use what and why, and who made it so.
var reasonPages = []string{"access", "explain", "history", "difference"}

// reason leads to them.
func (v *visit) reason(parts []string) {
	switch {
	case len(parts) == 1 && parts[0] == "access":
		v.access()
	case len(parts) == 1 && parts[0] == "explain":
		v.explain()
	case len(parts) == 2 && parts[0] == "explain" && parts[1] == "change":
		v.remedy()
	case len(parts) == 1 && parts[0] == "history":
		v.history()
	case len(parts) == 2 && parts[0] == "history":
		v.entry(parts[1])
	case len(parts) == 3 && parts[0] == "history" && parts[2] == "undo":
		v.undo(parts[1])
	case len(parts) == 1 && parts[0] == "difference":
		v.difference()
	default:
		v.missing()
	}
}

// tabs lead from a record to what else there is to see of it.
func tabs(of resource, id, at string) (links []navLink) {
	if of.Name == "identity" || of.Name == "service" {
		links = append(links, navLink{Text: "Access", Href: accessPage(of.Name, id, at)})
	}
	if of.Noted {
		links = append(links, navLink{Text: "History", Href: of.page(id, "history")})
	}
	return links
}
