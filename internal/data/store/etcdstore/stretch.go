package etcdstore

import clientv3 "go.etcd.io/etcd/client/v3"

// stretch is where the next page of Load comes from. For every page etcd counts
// all keys up to the end that it is asked for, so with one end for all pages of a
// million keys the counting would take longer than the reading: as long as there are
// many behind a page, the end is that of the keys that begin alike.
type stretch struct {
	from, end string // the first key, and the first that is not in it

	least string // what every key begins with, or comes after
	last  string // the first key behind all of them
	depth int    // how many bytes of its first key all keys of a stretch have in common
	held  int64  // how many keys it had before any was read; 0 if that is not known yet
}

// mostCounted is how many times the keys of a page etcd may count, and wider how many times
// as many keys there may be that have a byte less in common.
const (
	mostCounted = 8
	wider       = 64
)

func newStretch(from, last string) *stretch {
	return &stretch{from: from, end: last, least: from, last: last, depth: len(from)}
}

// follow moves to what comes behind a page that might have had so many keys. It reports
// whether there may be more.
func (s *stretch) follow(page *clientv3.GetResponse, limit int64) bool {
	if s.held == 0 {
		s.held = page.Count
	}
	if page.More {
		first, last := page.Kvs[0].Key, page.Kvs[len(page.Kvs)-1].Key
		s.from = string(last) + "\x00"
		if page.Count > mostCounted*limit {
			s.depth = max(s.depth, alike(first, last)) + 1
			s.bound()
		}
		return true
	}
	if s.end == s.last {
		return false
	}
	s.from = s.end
	if s.held*wider <= mostCounted*limit && s.depth > len(s.least) {
		s.depth--
	}
	s.bound()
	return true
}

// bound ends the stretch behind the keys that begin as its first one does.
func (s *stretch) bound() {
	s.end, s.held = s.last, 0
	if s.depth <= len(s.least) {
		return
	}
	if end := behind(s.from[:min(s.depth, len(s.from))]); end != "" && end < s.last {
		s.end = end
	}
}

// behind is the first key after all that begin with a text; nothing if there is none.
func behind(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// alike is how many bytes two keys have in common at their beginning.
func alike(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
