// Package method is the words for how somebody enrolls, and for how somebody
// shows who it is. Records, tokens and requests have them alike. It imports
// nothing of ours.
package method

// The methods. Password and Cert are those to log in with; the first is one to
// enroll by, too.
const (
	OTT      = "ott"   // with a certificate that the controller issues
	OTTCA    = "ottca" // with a certificate of another CA
	ErOTT    = "erott" // as an edge router
	TrOTT    = "trott" // as a router that serves no clients
	CA       = "ca"    // as whom a certificate of a CA names
	Password = "updb"
	Cert     = "cert"
)
