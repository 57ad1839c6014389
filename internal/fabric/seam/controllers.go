package seam

// Controllers is the controllers of the network.
type Controllers interface {
	// Online reports whether a controller is there.
	Online(id string) bool
}
