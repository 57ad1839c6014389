package tunneler

import (
	"net"
	"testing"
)

// TestWaitingDatagrams has more datagrams come than anybody takes: what waits
// is bounded, and whatever is read or given up makes room.
func TestWaitingDatagrams(t *testing.T) {
	p := &port{senders: map[string]*sender{}}
	data := make([]byte, maxDatagram)
	var all []*sender
	for i := range maxSenders {
		s, fresh := p.sender(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: i + 1})
		if s == nil || !fresh {
			t.Fatalf("sender %d is not taken for a new one", i)
		}
		all = append(all, s)
	}
	if s, _ := p.sender(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 1}); s != nil {
		t.Error("there are more senders than may be")
	}
	taken := 0
	for _, s := range all {
		for range 2 * maxWaiting {
			if s.offer(data) {
				taken++
			}
		}
	}
	if taken == 0 || taken*maxDatagram > maxWaitingBytes {
		t.Fatalf("%d bytes wait, of at most %d", taken*maxDatagram, maxWaitingBytes)
	}
	buf := make([]byte, maxDatagram)
	if n, err := all[0].Read(buf); n != len(data) || err != nil {
		t.Fatalf("read %d, %v", n, err)
	}
	if !all[0].offer(data) || all[0].offer(data) {
		t.Error("what was read makes room for something else than one more")
	}
	for _, s := range all {
		_ = s.Close()
		s.offer(data) // too late
	}
	if left := p.waiting.Load(); left != 0 || len(p.senders) != 0 {
		t.Errorf("%d bytes and %d senders are left", left, len(p.senders))
	}
}
