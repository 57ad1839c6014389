package signon

import "netkeep.internal/internal/web/ticket"

// MaxSealed is how long what a browser keeps may be: more would not fit into a cookie.
const MaxSealed = 3500

// sealed is how a browser keeps a ticket.
func (d *Desk) sealed() ticket.Seal {
	return ticket.Seal{Keys: d.Keys, Purpose: "netkeep login at a provider", Most: MaxSealed}
}
