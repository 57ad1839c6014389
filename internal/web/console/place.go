package console

// Pages that are of no kind: first of all, and below the tables of kinds.
var (
	places = []navLink{
		{Text: "Network", Href: Root + "network"},
		{Text: "Circuits", Href: Root + "circuits"},
		{Text: "Who may use what", Href: Root + "access"},
		{Text: "Explain", Href: Root + "explain"},
		{Text: "Lint", Href: Root + "lint"},
		{Text: "History", Href: Root + "history"},
		{Text: "Invite", Href: Root + "invite"},
	}
	lastPlaces = []navGroup{
		{"Controllers", []navLink{
			{Text: "Certificates", Href: Root + "certificates"},
			{Text: "Cluster members", Href: Root + "cluster"},
			{Text: "Snapshots", Href: Root + "snapshots"},
			{Text: "Alerts", Href: Root + "alerts"},
		}},
		{"For programs", []navLink{{Text: "API", Href: Root + "api"}}},
	}
)

// marked are ways to pages, with the one that is open.
func marked(links []navLink, first string) []navLink {
	list := make([]navLink, len(links))
	for i, l := range links {
		l.Here = l.Href == Root+first
		list[i] = l
	}
	return list
}

// picture leads to the pages that show the network and the controllers, and do what no form does; it reports
// whether the path is one of theirs.
func (v *visit) picture(parts []string) bool {
	n, last := len(parts), parts[len(parts)-1]
	switch {
	case n == 1 && last == "network":
		v.network()
	case n == 1 && last == "circuits":
		v.circuits()
	case n == 3 && parts[0] == "circuits" && (last == "end" || last == "delete"):
		v.endCircuit(parts[1])
	case n == 1 && last == "certificates":
		v.certificates()
	case n == 1 && last == "cluster":
		v.cluster()
	case n == 3 && parts[0] == "cluster":
		v.member(parts[1], last)
	case n == 1 && last == "snapshots":
		v.snapshots()
	case n == 3 && parts[0] == "snapshots" && last == "verify":
		v.verifySnapshot(parts[1])
	case n == 1 && last == "alerts":
		v.alerts()
	case n == 3 && parts[0] == "alerts" && last == "test":
		v.testAlert(parts[1])
	case n == 1 && last == "lint":
		v.lint()
	case n == 3 && parts[0] == "access-requests" && (last == "approve" || last == "deny"):
		v.decide(parts[1], last)
	default:
		return false
	}
	return true
}
