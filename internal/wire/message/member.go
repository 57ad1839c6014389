package message

// Members is TypeMembers: where all controllers of a network are. It is complete:
// who is not in it is none any more.
type Members struct {
	Addresses []string `pb:"1"` // for routers that do not read Controllers
	// Index grows with each change, whichever controller tells of it.
	Index       uint64   `pb:"2"`
	Leader      bool     `pb:"3"`
	Controllers []Member `pb:"4"`
}

// Member is a controller.
type Member struct {
	ID        string     `pb:"1"`
	Endpoints []Endpoint `pb:"2"`
}

// Endpoint is where a controller is reached.
type Endpoint struct {
	Address string   `pb:"1"`
	Groups  []string `pb:"2"`
}
