package scene_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"netkeep.internal/internal/web/console/scene"
)

// most is how many boxes a picture has.
const most = 100

// network draws a random one.
func network(t *rapid.T) (n int, links []scene.Link) {
	n = rapid.IntRange(0, most).Draw(t, "boxes")
	if n < 2 {
		return n, nil
	}
	for range rapid.IntRange(0, 200).Draw(t, "links") {
		from := rapid.IntRange(0, n-1).Draw(t, "from")
		to := (from + rapid.IntRange(1, n-1).Draw(t, "to")) % n
		links = append(links, scene.Link{From: from, To: to, Wide: rapid.SampledFrom([]int{0, 40, 60, 90}).Draw(t, "wide"), First: rapid.Bool().Draw(t, "first")})
	}
	return n, links
}

// TestDraw draws networks at random: nothing overlaps, everything is inside, and no line
// runs through a box.
func TestDraw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, links := network(t)
		p := scene.Draw(n, links)
		if len(p.Boxes) != n || len(p.Lines) != len(links) {
			t.Fatalf("%d boxes and %d lines for %d and %d", len(p.Boxes), len(p.Lines), n, len(links))
		}
		all, taken := scene.Box{W: p.W, H: p.H}, slices.Clone(p.Boxes)
		for _, l := range p.Lines {
			if l.Label.W > 0 {
				taken = append(taken, l.Label)
			}
		}
		for i, b := range taken {
			if !b.Within(all) || b.W <= 0 || b.H <= 0 {
				t.Fatalf("%v is not inside of %v", b, all)
			}
			for _, o := range taken[:i] {
				if b.Overlaps(o) {
					t.Fatalf("%v and %v overlap", b, o)
				}
			}
		}
		for i, l := range p.Lines {
			runsFree(t, p, l.Path, links[i])
		}
		// What is drawn again is the same, and boxes stay where lines come and go.
		if again := scene.Draw(n, links); fmt.Sprint(again) != fmt.Sprint(p) {
			t.Fatal("the same is drawn differently")
		}
		if without := scene.Draw(n, nil); !slices.Equal(without.Boxes, p.Boxes) {
			t.Fatal("boxes move with the lines")
		}
	})
}

// runsFree fails if a line runs through a box.
func runsFree(t *rapid.T, p scene.Picture, path string, l scene.Link) {
	var ax, ay, x, y, bx, by float64
	if _, err := fmt.Sscanf(path, "M%g %gQ%g %g %g %g", &ax, &ay, &x, &y, &bx, &by); err != nil {
		t.Fatalf("%q: %v", path, err)
	}
	const steps = 200
	for i := 1; i < steps; i++ {
		s := float64(i) / steps
		u := 1 - s
		px, py := u*u*ax+2*u*s*x+s*s*bx, u*u*ay+2*u*s*y+s*s*by
		for j, b := range p.Boxes {
			if px > float64(b.X)+1 && px < float64(b.X+b.W)-1 && py > float64(b.Y)+1 && py < float64(b.Y+b.H)-1 {
				t.Fatalf("the line from %d to %d of %d runs through %d", l.From, l.To, len(p.Boxes), j)
			}
		}
	}
}

// TestEveryPair draws all lines that there can be, for every number of boxes.
func TestEveryPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, most).Draw(t, "boxes")
		from := rapid.IntRange(0, n-1).Draw(t, "from")
		var links []scene.Link
		for to := range n {
			if to != from {
				links = append(links, scene.Link{From: from, To: to})
			}
		}
		p := scene.Draw(n, links)
		for i, l := range p.Lines {
			runsFree(t, p, l.Path, links[i])
		}
	})
}

// TestLabels has room for the labels of small networks.
func TestLabels(t *testing.T) {
	for n := 2; n <= 5; n++ {
		var links []scene.Link
		for from := range n {
			for to := from + 1; to < n; to++ {
				links = append(links, scene.Link{From: from, To: to, Wide: 48})
			}
		}
		for i, l := range scene.Draw(n, links).Lines {
			if l.Label.W == 0 {
				t.Errorf("of %d boxes, line %d has no label", n, i)
			}
		}
	}
}
