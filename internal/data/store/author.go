package store

// What may write besides somebody who has a record.
const (
	// Program is a part of the program that acts by itself.
	Program = "program"
	// Anonymous is somebody of whom nothing is known.
	Anonymous = "anonymous"
)

// Author is who made a write, and on what occasion.
type Author struct {
	// Kind is the kind of the record that stands for who wrote, "identity"
	// mostly, or Program or Anonymous. Every author has one.
	Kind string `json:"kind"`
	ID   string `json:"id,omitempty"`
	// Name is what the record was called then, or the part of the program.
	Name string `json:"name,omitempty"`

	// What the write was made for: the operation of an API and the request,
	// with the address that it came from. A program that acts by itself has
	// none of these.
	Operation string `json:"operation,omitempty"`
	Request   string `json:"request,omitempty"`
	Source    string `json:"source,omitempty"`
	// Session is the API session of the request, and Factors what was shown for
	// it, with commas between.
	Session string `json:"session,omitempty"`
	Factors string `json:"factors,omitempty"`
}

// On returns the author on the occasion that another wrote on.
func (a Author) On(other Author) Author {
	a.Operation, a.Request, a.Source = other.Operation, other.Request, other.Source
	a.Session, a.Factors = other.Session, other.Factors
	return a
}

// String names who it is, in short.
func (a Author) String() string {
	switch {
	case a.ID != "":
		return a.Kind + ":" + a.ID
	case a.Name != "":
		return a.Kind + ":" + a.Name
	}
	return a.Kind
}

// Size is about how many bytes an author takes in the head of a batch.
func (a Author) Size() int {
	const names = 110 // of the members, with what is between them
	return names + len(a.Kind) + len(a.ID) + len(a.Name) + len(a.Operation) + len(a.Request) + len(a.Source) + len(a.Session) + len(a.Factors)
}

// Write is the part of a batch that one author wrote, as one write.
type Write struct {
	Author Author `json:"author"`
	Ops    int    `json:"ops"`
}
