package takeover

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Report is what comes over, what does not and what people should know.
type Report struct {
	Database   string `json:"database"`
	Version    int64  `json:"version"`    // of its layout
	Controller string `json:"controller"` // what routers call it

	Kinds []*Count `json:"kinds"`
	// Left are records that have no home here, and Refused those that our rules do not take.
	Left    []Left `json:"left"`
	Refused []Left `json:"refused"`
	Notes   []Note `json:"notes"`
}

// Count is how many records of a kind are taken and left.
type Count struct {
	Kind  string `json:"kind"`
	Taken int    `json:"taken"`
	Left  int    `json:"left"`
}

// Left is a record that is not taken.
type Left struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Note is something to know.
type Note struct {
	Code    string   `json:"code"`
	Warning bool     `json:"warning"` // somebody may notice
	Text    string   `json:"text"`
	About   []string `json:"about"`
}

// notice is a sort of note.
type notice struct {
	code    string
	warning bool
	text    string
}

// The sorts of notes.
var (
	PlainSecrets = &notice{"plain-secrets", true, "The old database holds secrets in plain text. Here they are sealed; keep the old file as safe as it always had to be, or destroy it when you are sure not to go back."}
	OpenKeys     = &notice{"open-keys", true, "Files with keys can be read by other users of the machine. The copies here cannot; see to the originals, and rotate the keys if somebody may have read them."}
	Several      = &notice{"several-certificates", false, "Identities have several certificates. All of them go on to work; a further one cannot be added before one is deleted."}
	NumericTags  = &notice{"numeric-tags", false, "Tags that are numbers or more become texts."}
	OIDC         = &notice{"openid-connect", true, "Clients that are logged in by OpenID Connect at the old controller have to log in again. Those of these identities do so by themselves where oidc.enabled is set here, and have to be restarted where it is not."}
	Sessions     = &notice{"sessions", false, "Clients that are connected to routers by a certificate stay logged in, if they were not silent for longer than sessions last. All others log in again, clients by themselves: whoever logged in with a token or by OpenID Connect, admins, and people who are at the APIs alone."}
	Permissions  = &notice{"permissions", false, "Identities have permissions of OpenZiti 2. They keep them, as admin roles that allow as much."}
	NoPermission = &notice{"unknown-permissions", true, "Identities have permissions that are not known here, which are not taken: give them admin roles."}
	NoField      = &notice{"no-field", false, "Fields that nothing here goes by are not taken."}
	Unknown      = &notice{"unknown", true, "The database holds what this program does not know, which is not taken."}
	Pointer      = &notice{"claim-pointer", true, "External JWT signers find identities by a claim inside of another, which cannot be done here: nobody can authenticate by their tokens until claimsProperty names a claim."}
	Enrolling    = &notice{"people", true, "External JWT signers make identities of everybody whom the provider knows. Here it has to be said who may come, so that is off until it is: see enrollEmailDomains, enrollGroups and enrollClaims."}
	Usage        = &notice{"client-usage", true, "Certificates of other CAs are not made for clients, and are not accepted here: these identities cannot log in until they have others."}
	WeakKeys     = &notice{"weak-keys", true, "Certificates have keys that are too weak to be accepted here: who has them cannot log in until they are replaced."}
	Issuers      = &notice{"external-id-issuers", false, "Identities are named by certificates or tokens of others, and have power or a credential of their own. Those who could name them still can, and are listed in their externalIdIssuers: see that you want it so."}
	RouterNames  = &notice{"router-names", false, "Routers have certificates for names of the controller, which nobody else may have here. They may keep them: see allowedNames."}
	Dangling     = &notice{"dangling", false, "Records refer to others that are not there or not taken. They are taken without."}
	Cluster      = &notice{"cluster", true, "The network has several controllers, and this one alone is taken over: stop the others, and take the file of the leader. Clients and routers that know only the others have to be led here."}
	Raft         = &notice{"raft", false, "The database was kept by several controllers, or could be: see that this is the file of the leader."}
	RootAway     = &notice{"root-key", false, "The key of the root CA does not come along, and nothing needs it until the CA that signs ends."}
	Renamed      = &notice{"renamed", false, "Identities of routers get the names of their routers."}
	ControllerID = &notice{"controller-id", true, "The controller gets an id of its own, because the old one cannot be used here: routers of OpenZiti 1.6.0 have to be restarted."}
)

func (r *Report) count(path string) *Count {
	for _, c := range r.Kinds {
		if c.Kind == path {
			return c
		}
	}
	c := &Count{Kind: path}
	r.Kinds = append(r.Kinds, c)
	return c
}

func (r *Report) leave(path, id, name, why string) {
	r.count(path).Left++
	r.Left = append(r.Left, Left{path, id, name, why})
}

func (r *Report) note(n *notice, about string) {
	i := slices.IndexFunc(r.Notes, func(other Note) bool { return other.Code == n.code })
	if i < 0 {
		i = len(r.Notes)
		r.Notes = append(r.Notes, Note{Code: n.code, Warning: n.warning, Text: n.text, About: []string{}})
	}
	if about != "" && !slices.Contains(r.Notes[i].About[max(0, len(r.Notes[i].About)-1):], about) {
		r.Notes[i].About = append(r.Notes[i].About, about)
	}
}

// maxShown is how many records the text names of each sort.
const maxShown = 10

// Write writes the report for people.
func (r *Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s, version %d, of the controller %s\n\n", r.Database, r.Version, r.Controller)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RECORDS\tTAKEN\tLEFT")
	kinds := slices.Clone(r.Kinds)
	slices.SortFunc(kinds, func(a, b *Count) int { return strings.Compare(a.Kind, b.Kind) })
	for _, c := range kinds {
		fmt.Fprintf(table, "%s\t%d\t%d\n", c.Kind, c.Taken, c.Left)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	writeLeft(w, "Refused by the rules of netkeep:", r.Refused)
	writeLeft(w, "Not taken:", r.Left)
	notes := slices.Clone(r.Notes)
	slices.SortStableFunc(notes, func(a, b Note) int { return cmp.Compare(rank(a), rank(b)) })
	for _, n := range notes {
		word := "note"
		if n.Warning {
			word = "warning"
		}
		fmt.Fprintf(w, "\n%s: %s\n", word, n.Text)
		for i, about := range n.About {
			if i == maxShown {
				fmt.Fprintf(w, "  and %d more\n", len(n.About)-maxShown)
				break
			}
			fmt.Fprintf(w, "  %s\n", about)
		}
	}
	return nil
}

func rank(n Note) int {
	if n.Warning {
		return 0
	}
	return 1
}

func writeLeft(w io.Writer, title string, list []Left) {
	if len(list) > 0 {
		fmt.Fprintf(w, "\n%s\n", title)
	}
	for i, l := range list {
		if i == maxShown*5 {
			fmt.Fprintf(w, "  and %d more\n", len(list)-i)
			break
		}
		fmt.Fprintf(w, "  %s/%s %s: %s\n", l.Kind, l.ID, l.Name, l.Why)
	}
}
