package stream

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// linked returns two started ends that call each other, as two on one router do.
func linked() (a, b *End) {
	a = New(Options{
		Circuit: "2xq6eJvBGZCvXmnMcF0u3h", Now: time.Now,
		Send: func(p *Payload, _ bool) bool { b.Payload(p); return true },
		Ack:  func(x *Ack) { b.Acked(x) },
	})
	b = New(Options{
		Circuit: "2xq6eJvBGZCvXmnMcF0u3h", Terminator: true, Now: time.Now,
		Send: func(p *Payload, _ bool) bool { a.Payload(p); return true },
		Ack:  func(x *Ack) { a.Acked(x) },
	})
	a.Start()
	return a, b
}

func drain(e *End) (n int) {
	for {
		m, ok := e.Next()
		if !ok {
			return n
		}
		n += len(m.Data)
	}
}

func benchmarkMessages(b *testing.B, size int) {
	from, to := linked()
	data := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := from.Write(context.Background(), Message{Data: data}); err != nil {
			b.Fatal(err)
		}
		drain(to)
	}
}

func BenchmarkMessage32K(b *testing.B) { benchmarkMessages(b, 32<<10) }
func BenchmarkMessage100(b *testing.B) { benchmarkMessages(b, 100) }

// BenchmarkWindow has much in flight: 64 messages are sent before any is
// acknowledged.
func BenchmarkWindow(b *testing.B) {
	var there []*Payload
	var back []*Ack
	var from, to *End
	from = New(Options{
		Circuit: "c", Now: time.Now, Ack: func(a *Ack) { to.Acked(a) },
		Send: func(p *Payload, _ bool) bool { there = append(there, p); return true },
	})
	to = New(Options{
		Circuit: "c", Terminator: true, Now: time.Now, Ack: func(a *Ack) { back = append(back, a) },
		Send: func(p *Payload, _ bool) bool { from.Payload(p); return true },
	})
	from.Start()
	data := make([]byte, 32<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if !from.TryWrite(Message{Data: data}) {
			b.Fatal("no room")
		}
		if i%64 != 63 {
			continue
		}
		for _, p := range there {
			to.Payload(p)
		}
		there = there[:0]
		drain(to)
		for _, a := range back {
			from.Acked(a)
		}
		back = back[:0]
	}
}

// BenchmarkWire adds what it takes to make frames and to read them.
func BenchmarkWire(b *testing.B) {
	p := &Payload{Circuit: "2xq6eJvBGZCvXmnMcF0u3h", Seq: 1, Stamp: 2, Data: make([]byte, 32<<10)}
	a := &Ack{Circuit: "2xq6eJvBGZCvXmnMcF0u3h", Held: 3, Stamp: 2, Seqs: []int32{1}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePayload(p.Packet()); err != nil {
			b.Fatal(err)
		}
		if _, err := ParseAck(a.Packet()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdle tells what an end costs that has carried something and waits.
func BenchmarkIdle(b *testing.B) {
	const ends = 10_000
	var before, after runtime.MemStats
	kept := make([]*End, 0, ends)
	b.ReportAllocs()
	for b.Loop() {
		clear(kept)
		kept = kept[:0]
		runtime.GC()
		runtime.ReadMemStats(&before)
		for range ends / 2 {
			x, y := linked()
			for range 4 {
				x.TryWrite(Message{Data: make([]byte, 1000)})
				y.TryWrite(Message{Data: make([]byte, 1000)})
			}
			drain(x)
			drain(y)
			kept = append(kept, x, y)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/ends, "B/end")
	runtime.KeepAlive(kept)
}
