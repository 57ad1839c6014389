package link

import (
	"crypto/rand"
	"fmt"

	"netkeep.internal/internal/wire"
	"netkeep.internal/internal/wire/channel"
	"netkeep.internal/internal/wire/message"
)

// maxText bounds the texts of peers: ids, bindings and versions.
const maxText = 256

func clip(s string) string { return s[:min(len(s), maxText)] }

// hello is how a link is dialled. The numbers of its headers mean other things
// on connections of other kinds.
func (k *Link) hello(routerID, binding string) channel.Hello {
	h := wire.Headers{}
	h.SetText(message.HeaderLinkConn, rand.Text())
	h.SetText(message.HeaderLinkRouter, routerID)
	h.SetText(message.HeaderLinkVersion, k.version)
	h.SetText(message.HeaderLinkBinding, binding)
	h.SetUint32(message.HeaderLinkIteration, k.iteration)
	h.SetText(message.HeaderLinkDialed, k.peer)
	return channel.Hello{ID: k.id, Headers: h}
}

// What a connection carries, of links that have two.
const (
	splitNone byte = 0 // it is the only one
	splitData byte = 1
	splitAcks byte = 2
)

// greeting is what a hello of a link says.
type greeting struct {
	linkID, routerID, binding, conn string
	iteration                       uint32
	split                           byte
	// Of links with several connections.
	several        bool
	first          bool
	strand, secret string
}

// further reports whether the connection belongs to a link that there is. Some
// say of all that they are the first; a first one knows no secret.
func (g greeting) further() bool { return g.several && g.secret != "" }

// readGreeting takes a hello apart, at the router that it is sent to.
func readGreeting(h *channel.Hello, own string) (greeting, error) {
	g := greeting{
		linkID: h.ID, routerID: h.Headers.Text(message.HeaderLinkRouter),
		binding: h.Headers.Text(message.HeaderLinkBinding), conn: h.Headers.Text(message.HeaderLinkConn),
	}
	g.iteration, _ = h.Headers.Uint32(message.HeaderLinkIteration)
	g.split, _ = h.Headers.Byte(message.HeaderLinkSplit)
	g.several, g.first = h.Grouped(), h.First()
	g.strand, g.secret = h.Headers.Text(message.HeaderChannelType), string(h.Secret())
	for name, text := range map[string]string{"link's id": g.linkID, "router's id": g.routerID} {
		if text == "" {
			return greeting{}, fmt.Errorf("the hello has no %s", name)
		}
	}
	for name, text := range map[string]string{"link's id": g.linkID, "router's id": g.routerID, "binding": g.binding, "connection's id": g.conn, "connection's type": g.strand} {
		if !plain(text) {
			return greeting{}, fmt.Errorf("the %s in the hello is none", name)
		}
	}
	if to, names := h.Headers[message.HeaderLinkDialed]; names && string(to) != own {
		return greeting{}, fmt.Errorf("the hello is for another router: %q", clip(string(to)))
	}
	switch {
	case g.routerID == own:
		return greeting{}, fmt.Errorf("a router does not dial itself")
	case g.split > splitAcks:
		return greeting{}, fmt.Errorf("connections of type %d are not known", g.split)
	case g.split != splitNone && g.conn == "":
		return greeting{}, fmt.Errorf("the hello does not say which connections belong together")
	}
	return g, nil
}

// maxID is how long an id or a name may be. Controllers take no longer ids.
const maxID = 64

// plain reports whether a text is short and made of visible letters and signs.
func plain(text string) bool {
	for _, b := range []byte(text) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return len(text) <= maxID
}
