// Package format is the version of what a store holds. A store says which
// format its records have; a version that reads a later one brings it there,
// once, and an earlier one leaves it alone. It owns the record that says so,
// which is of no kind, and the steps from each format to the next. It imports
// store and nothing else of ours: a step sees records as they were stored, not
// as kinds that may have changed since.
package format

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Key is where a store says which format it has. One without it has format 1.
const Key = "format/store"

// Step makes one format of the one before.
type Step struct {
	// Release is the first that reads the format.
	Release string
	// Rewrite returns what is to be stored in place of a record, the same if it
	// stays as it is, or nil if it goes. It may meet a record again that it has
	// rewritten, and must leave it so. A record that it cannot read stays. No
	// Rewrite leaves everything as it is.
	Rewrite func(key string, value []byte) ([]byte, error)
	// Split returns what is to be stored beside what Rewrite leaves of a record,
	// by key. It is asked of those that Rewrite changes, and what it returns is
	// written in the same batch. No Split adds nothing.
	Split func(key string, value []byte) (map[string][]byte, error)
}

// Steps are those that there are, of which one seals with the network's keys.
// The first makes format 2. A step is there for good: add one where an older
// version would misread what a newer one writes. A field that is added or renamed
// needs none, and neither does a kind.
func Steps(seal Seal) []Step {
	return []Step{
		// A Put says who wrote it, as a Commit does; older versions cannot follow.
		{Release: "v0.1.0"},
		// What lets somebody in is sealed; older versions cannot open it.
		{Release: "v0.1.0", Rewrite: sealStep(seal)},
		// A large batch is staged; older versions would see a part of it.
		{Release: "v0.1.0"},
		// What clients said of themselves has records of its own; older versions
		// would look for it in identities, and write it there.
		{Release: "v0.1.0", Rewrite: withoutInfo, Split: infoApart},
		// Commits say where the journal ends; older versions would go on from
		// where a record says that it did. The first of them to say so marks
		// that record, which guards those that they do not know of.
		{Release: "v0.1.0"},
		// Policies may begin and end by themselves, and grants give attributes for a
		// time; older versions would let people in by what is over.
		{Release: "v0.1.0"},
	}
}

// Waits is how many of the last steps this version can leave for later: it works
// with what is stored before them too, as it must beside controllers of a version
// that knows nothing of them. A step that is added makes it one more where that is so,
// and a version that needs the steps makes it 0 again.
const Waits = 2

// Ends is the first format in which commits say where the journal ends.
const Ends = 6

// Times is the first format in which policies and grants may have times.
const Times = 7

// Current is the format of this version, and Oldest the first that it can work with
// as it is.
var (
	Current = current(Steps(nil))
	Oldest  = Current - Waits
)

func current(steps []Step) int { return 1 + len(steps) }

// version is the record at Key.
type version struct {
	Format  int    `json:"format"`
	Release string `json:"release"` // the first that reads the format
	// From is the format before, while some records may still have it.
	From int `json:"from,omitzero"`
	// Rewritten is how many records were, meanwhile.
	Rewritten int `json:"rewritten,omitzero"`
}

// In is the format that a store with this value at Key has, nil for none: nobody
// else uses one that says nothing, and it is as this version writes it.
func In(value []byte) int {
	v, err := parse(value)
	if value == nil || err != nil {
		return Current
	}
	return v.Format
}

func parse(value []byte) (version, error) {
	v := version{Format: 1}
	if value == nil {
		return v, nil
	}
	if err := json.Unmarshal(value, &v); err != nil || v.Format < 1 {
		return v, fmt.Errorf("the store does not say which format it has: %s holds %.100q", Key, value)
	}
	return v, nil
}

// NewerError says that only newer versions can read a store.
type NewerError struct {
	Format  int
	Release string // the first that can
	Most    int    // what this version can read
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("the store has format %d, which netkeep %s and newer can read; this version reads formats up to %d",
		e.Format, e.Release, e.Most)
}

// refuse says why a version that knows formats up to most must not use a store;
// nil if it may.
func (v version) refuse(most int) error {
	if v.Format <= most {
		return nil
	}
	return &NewerError{v.Format, v.Release, most}
}

// Readable returns why this version cannot read a store with this value at Key,
// nil for none; it returns nil if it can, perhaps after a Migration.
func Readable(value []byte) error {
	v, err := parse(value)
	if err != nil {
		return err
	}
	return v.refuse(Current)
}

// Usable is Readable for a store that is in use: it is not being rewritten
// either.
func Usable(value []byte) error {
	v, err := parse(value)
	if err == nil {
		err = v.refuse(Current)
	}
	if err == nil && v.From != 0 {
		err = fmt.Errorf("the store is being brought to format %d", v.Format)
	}
	return err
}
