package stream

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"netkeep.internal/internal/wire"
)

// TestAcksTogether acknowledges payloads at once that came together. What is told of
// room meanwhile goes with it.
func TestAcksTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var acks []*Ack
		e := New(Options{
			Circuit: "c", Terminator: true, Now: time.Now,
			Send: func(*Payload, bool) bool { return true },
			Ack:  func(a *Ack) { acks = append(acks, a) },
		})
		defer e.Abort(nil)
		batch := new(wire.Batch)
		batch.Open()
		for seq := range int32(4) {
			e.Payload(&Payload{Circuit: "c", Seq: seq, Stamp: uint16(100 + seq), Data: make([]byte, 60_000), Batch: batch})
		}
		if len(acks) > 0 {
			t.Fatalf("%d were acknowledged early", len(acks[0].Seqs))
		}
		held := e.Stats().Held
		for range 3 {
			if _, ok := e.Next(); !ok {
				t.Fatal("nothing is there")
			}
		}
		if len(acks) > 0 {
			t.Fatal("what is held overtook what is acknowledged")
		}
		batch.Flush()
		if len(acks) != 1 || !slices.Equal(acks[0].Seqs, []int32{0, 1, 2, 3}) || acks[0].Stamp != 103 || int(acks[0].Held) >= held {
			t.Fatalf("acknowledged was %+v", acks)
		}
		parsed, err := ParseAck(acks[0].Packet())
		if err != nil || !slices.Equal(parsed.Seqs, acks[0].Seqs) {
			t.Errorf("it is read as %+v, %v", parsed, err)
		}
		e.Payload(&Payload{Circuit: "c", Seq: 4, Batch: batch}) // kept until the batch is over
		if len(acks) != 2 || !slices.Equal(acks[1].Seqs, []int32{4}) {
			t.Errorf("one that came alone: %+v", acks)
		}
	})
}
