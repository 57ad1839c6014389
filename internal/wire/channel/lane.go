package channel

// turn is how many bytes of a lane are sent before it is another's turn: a
// message or two of programs that copy.
const turn = 64 << 10

// lane is what waits of one of those who share a channel.
type lane struct {
	key    string
	items  []item
	bytes  int
	credit int // bytes that it may send, of its turns so far
}

// lanes are those of whom something waits. They take turns, so that one who
// sends much does not have others wait for all of it.
type lanes struct {
	bytes int // of all
	byKey map[string]*lane
	turns []*lane // the first is next
}

// held is how many bytes wait of a lane.
func (l *lanes) held(key []byte) int {
	if ln := l.byKey[string(key)]; ln != nil {
		return ln.bytes
	}
	return 0
}

func (l *lanes) add(key []byte, i item, size int) {
	ln := l.byKey[string(key)]
	if ln == nil {
		if l.byKey == nil {
			l.byKey = map[string]*lane{}
		}
		ln = &lane{key: string(key)}
		l.byKey[ln.key] = ln
		l.turns = append(l.turns, ln)
	}
	ln.items = append(ln.items, i)
	ln.bytes += size
	l.bytes += size
}

// take adds what is to be sent next, of about so many bytes.
func (l *lanes) take(to []item, most int) []item {
	for all := 0; all < most && len(l.turns) > 0; {
		ln := l.turns[0]
		size := 0
		if len(l.turns) == 1 {
			to, ln.items, size = move(to, ln.items, most-all)
			ln.credit = 0
		} else if ln.credit += turn; ln.items[0].size() <= ln.credit {
			to, ln.items, size = move(to, ln.items, ln.credit)
			ln.credit -= size
		}
		all += size
		ln.bytes -= size
		l.bytes -= size
		l.turns = l.turns[1:]
		if len(ln.items) > 0 {
			l.turns = append(l.turns, ln)
		} else {
			delete(l.byKey, ln.key)
		}
	}
	return to
}
