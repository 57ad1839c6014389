package message

// Posture is TypePosture: what a client reports of its device.
type Posture struct {
	Reports []PostureReport `pb:"1"`
}

// PostureReport is one thing that there is to report; the others are nil. What
// clients say of themselves and of second factors besides is not heard here.
type PostureReport struct {
	MACs     *PostureMACs     `pb:"1"`
	OS       *PostureOS       `pb:"2"`
	Programs *PosturePrograms `pb:"3"`
	Domain   *PostureDomain   `pb:"4"`
	Woken    *PostureEvent    `pb:"5"`
	Unlocked *PostureEvent    `pb:"6"`
}

// PostureMACs are the hardware addresses of a device.
type PostureMACs struct {
	Addresses []string `pb:"1"`
}

// PostureOS is the operating system of a device.
type PostureOS struct {
	Type    string `pb:"1"`
	Version string `pb:"2"`
	Build   string `pb:"3"`
}

// PosturePrograms are programs that may run on a device.
type PosturePrograms struct {
	List []PostureProgram `pb:"1"`
}

// PostureProgram is one of them.
type PostureProgram struct {
	Path    string   `pb:"1"`
	Running bool     `pb:"2"`
	Hash    string   `pb:"3"`
	Signers []string `pb:"4"` // fingerprints
}

// PostureDomain is the Windows domain that a device belongs to.
type PostureDomain struct {
	Name string `pb:"1"`
}

// PostureEvent is when something happened to a device, by its own clock.
type PostureEvent struct {
	At Timestamp `pb:"1"`
}

// Timestamp is a moment, since 1970.
type Timestamp struct {
	Seconds int64 `pb:"1"`
	Nanos   int32 `pb:"2"`
}
