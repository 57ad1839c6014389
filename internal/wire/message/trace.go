package message

// TogglePipes is TypeTogglePipeTraces and TypeTogglePipes: whose frames are to be told of
// as they come and go, or not any more.
type TogglePipes struct {
	Enable    bool   `pb:"1"`
	Verbosity uint32 `pb:"2"`
	Apps      string `pb:"3"` // regular expressions of who is meant, and of which of their channels
	Pipes     string `pb:"4"`
}

// What the answer tells of.
const (
	TellNothing uint32 = 0
	TellMatches uint32 = 1
	TellMisses  uint32 = 2
	TellAll     uint32 = 3
)

// ControlPipe is what a router calls its connections to controllers. Those call theirs by
// the id of the router.
const ControlPipe = "ctrl"

// StreamTraces is TypeStreamTraces: of which types of frames; all of them unless it is
// filtered.
type StreamTraces struct {
	Filtered bool    `pb:"1"`
	Only     uint32  `pb:"2"` // 1 for these alone, 0 for all others
	Types    []int32 `pb:"3"`
}

// Trace is TypeTrace and TypePipeTraced: a frame that somebody sent or got, without what is
// in it.
type Trace struct {
	Timestamp int64  `pb:"1"` // ns
	Identity  string `pb:"2"`
	Channel   string `pb:"3"`
	In        bool   `pb:"4"`
	Type      int32  `pb:"5"`
	Seq       int32  `pb:"6"`
	ReplyFor  int32  `pb:"7"` // -1 for nothing
	Length    int32  `pb:"8"`
	Decoded   []byte `pb:"9"` // JSON
}
