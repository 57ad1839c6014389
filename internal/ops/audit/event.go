package audit

import (
	"slices"
	"time"

	"netkeep.internal/internal/model"
)

// Event is something that happens and is no change of a record. Each is declared
// here, once: what entries call it, and how many entries there may be of it.
type Event struct {
	Name    string // what entries call it
	Outcome string
	Doc     string // when there is an entry

	// burst is how many entries there may be of it in a moment, and minute how many
	// a minute if it goes on. Both are 0 where only those who are let in can bring it
	// about.
	burst, minute int
	// each is how many of them a minute may be of one who brings it about: of an
	// address, or of somebody who is known.
	each int
	// late has nothing written before the window is over: it is there to be counted.
	late bool
	// window is how long those that are alike have one entry.
	window time.Duration
}

const (
	// aWhile is the window of most events.
	aWhile = time.Minute
	// maxEach is how many entries a minute one who is known may bring about of an event.
	maxEach = 30
	// What strangers may bring about of an event, and one address of that.
	strangeBurst, strangeMinute, strangeEach = 60, 6, 10
)

// events are all that there are.
var events []*Event

// Events returns all that there are.
func Events() []*Event { return slices.Clone(events) }

func declare(e Event) *Event {
	if e.window == 0 {
		e.window = aWhile
	}
	events = append(events, &e)
	return &e
}

// done is an event that those bring about who are let in.
func done(name, doc string) *Event {
	return declare(Event{Name: name, Outcome: model.AuditDone, Doc: doc, each: maxEach})
}

// refused is an event that anybody may bring about, and failed one that is nobody's wish.
func refused(name, doc string) *Event {
	return declare(Event{Name: name, Outcome: model.AuditRefused, Doc: doc, burst: strangeBurst, minute: strangeMinute, each: strangeEach})
}

func failed(name, doc string) *Event {
	return declare(Event{Name: name, Outcome: model.AuditFailed, Doc: doc, burst: strangeBurst, minute: strangeMinute, each: maxEach})
}

// What happens.
var (
	LoggedIn      = done("logged-in", "somebody got an API session")
	LoginRefused  = refused("login-refused", "somebody did not, or showed a wrong code; a user name that nobody has is not noted, since people type passwords in its place")
	TokenRefused  = refused("token-refused", "a request had a token of no API session, or of one that may not be used")
	Enrolled      = done("enrolled", "an identity or a router enrolled")
	EnrollRefused = refused("enrollment-refused", "somebody tried to enroll and was not let in")
	Issued        = done("certificate-issued", "a certificate was issued, with its serial number and when it ends")

	RouterConnected  = done("router-connected", "a router connected to a controller")
	RouterLost       = failed("router-lost", "the connection of a router ended")
	RouterRefused    = refused("router-refused", "somebody connected as a router and was not let in")
	RouterMisbehaved = failed("router-misbehaved", "a router did what none should")

	SessionRefused = refused("session-refused", "a client was not allowed to dial or host a service, with what it lacks: a policy, a posture check, a router")
	CircuitRefused = refused("circuit-refused", "a dial got no circuit, with what was missing")
	CircuitMade    = declare(Event{Name: "circuit-made", Outcome: model.AuditDone, Doc: "a dial got a circuit, if `audit.circuits` asks for an entry of each"}) // each, however many one dials
	CircuitsMade   = declare(Event{
		Name: "circuits-made", Outcome: model.AuditDone, Doc: "every hour, for who dialled which service how often, unless each circuit has an entry",
		late: true, window: time.Hour,
	})

	AdminReset       = done("admin-reset", "the default admin was let in again with `netkeep admin reset`")
	KeysChanged      = done("keys-changed", "a controller took up other keys of the network, with which; `netkeep keys rotate` makes them")
	LinkChanged      = done("link-changed", "somebody has set what a link costs, or whether circuits are led over it")
	LinkEnded        = done("link-ended", "somebody has had the ends of a link close it")
	SnapshotMade     = done("snapshot-made", "a snapshot was taken")
	SnapshotFailed   = failed("snapshot-failed", "a snapshot could not be taken")
	SnapshotRestored = done("snapshot-restored", "a controller was started with what `netkeep restore` made of a snapshot")

	AssertionRefused    = declare(Event{Name: "assertion-refused", Outcome: model.AuditRefused, Doc: "a change was refused since it would have broken an assertion, with who would have gained or lost what", each: maxEach})
	AssertionOverridden = done("assertion-overridden", "a change broke an assertion on purpose, with `override`")
	AssertionBroken     = done("assertion-broken", "what the program does by itself broke an assertion, such as the end of what was given for a time")
	RouterOffline       = failed("router-offline", "a router has been connected to no controller for as long as `alertAfter` says")
	RouterOnline        = done("router-online", "a router is connected again that was offline")
	ControllerGone      = failed("controller-gone", "a controller of the network has been away for as long as `alertAfter` says")
	ControllerBack      = done("controller-back", "a controller is there again that was gone")
	EndingSoon          = failed("ending-soon", "a certificate or token ends within two weeks, or certificates of clients within one")
	LockedOut           = refused("locked-out", "a password was wrong too often, and does not work for now")
	DiskLow             = failed("disk-low", "the disk of a controller has less left than `alertDisk` says")
	DiskEnough          = done("disk-enough", "it has more again")

	MemberInvited  = done("member-invited", "a token was made with which a controller may join")
	MemberJoined   = done("member-joined", "a controller joined")
	MemberRefused  = refused("member-refused", "a controller wanted to join and was refused")
	MemberPromoted = done("member-promoted", "a controller was given a vote")
	MemberRemoved  = done("member-removed", "a controller was taken out for good")
)
