// Package scene says where things are in a picture of a network: boxes around a free
// middle, lines between them, labels on the lines. It owns geometry alone: no two boxes
// or labels overlap, everything is inside, no line runs through a box, and the same
// network is always drawn in the same way. Where a box is follows from how many there
// are and in which order, and not from the lines: what is drawn again because a line
// came or went does not jump. It must not import anything of ours.
package scene

import "fmt"

// Box is a rectangle, by its upper left corner and its size.
type Box struct{ X, Y, W, H int }

// Overlaps reports whether two boxes have a point in common.
func (b Box) Overlaps(o Box) bool {
	return b.X < o.X+o.W && o.X < b.X+b.W && b.Y < o.Y+o.H && o.Y < b.Y+b.H
}

// Within reports whether all of a box is inside of another.
func (b Box) Within(o Box) bool {
	return b.X >= o.X && b.Y >= o.Y && b.X+b.W <= o.X+o.W && b.Y+b.H <= o.Y+o.H
}

// Link is a line that is wanted between two boxes, by their numbers.
type Link struct {
	From, To int
	// Wide is how wide its label is; 0 if it has none. First ones get theirs before
	// others.
	Wide  int
	First bool
}

// Line is how a link is drawn.
type Line struct {
	Path string // as SVG has it
	// Label is where its label is; nothing if there is no room for it.
	Label Box
}

// Picture is where everything is.
type Picture struct {
	W, H  int
	Low   bool  // whether boxes have room for one line of text alone
	Boxes []Box // in the order of what they stand for
	Lines []Line
}

// The sizes of things.
const (
	margin      = 12
	boxWidth    = 176
	boxHeight   = 40
	lowHeight   = 24
	gap         = 16
	middle      = 420 // free space at least, between the sides
	lead        = 40  // free space between the rows and what is beside them
	bend        = 32  // how far the ends of the sides stand in
	labelHeight = 16
	mostAcross  = 3 // boxes in a row
)

// Draw places n boxes, clockwise from the upper left, and draws the links between them.
func Draw(n int, links []Link) Picture {
	p := place(n)
	ends := make([]end, n)
	for i, b := range p.Boxes {
		ends[i] = p.inward(b)
	}
	p.Lines = make([]Line, len(links))
	curves := make([]curve, len(links))
	for i, l := range links {
		curves[i] = p.between(ends[l.From], ends[l.To])
		p.Lines[i].Path = curves[i].String()
	}
	p.label(links, curves)
	return p
}

// sides is how many boxes are on each of the four.
func sides(n int) (top, right, bottom, left int) {
	if n <= 2 {
		return 0, n / 2, 0, n - n/2 // the first on the left
	}
	top = max(1, min(mostAcross, n/6))
	if bottom = top; (n-2*top)%2 != 0 {
		bottom-- // so that both sides have the same
	}
	left = (n - top - bottom) / 2
	return top, n - top - bottom - left, bottom, left
}

// place puts the boxes around the middle.
func place(n int) Picture {
	p := Picture{Low: n > 40, Boxes: make([]Box, 0, n)}
	height, apart := boxHeight, 24
	if p.Low {
		height = lowHeight
	}
	switch {
	case n > 40:
		apart = 8
	case n > 16:
		apart = 12
	case n <= 8:
		apart = 40
	}
	top, right, bottom, left := sides(n)
	free := max(middle, max(top, bottom)*(boxWidth+gap)+gap)
	p.W = 2*(margin+boxWidth) + free
	if n == 1 {
		p.W = 2*margin + boxWidth
	}
	rows := max(left, right)
	start, tall := margin, max(0, rows*(height+apart)-apart)
	if top > 0 {
		start += height + lead
	}
	p.H = start + tall + margin
	if bottom > 0 {
		p.H += height + lead
	}
	across := func(count, i, y int) Box {
		each := free / count
		return Box{margin + boxWidth + i*each + (each-boxWidth)/2, y, boxWidth, height}
	}
	for i := range top {
		p.Boxes = append(p.Boxes, across(top, i, margin))
	}
	for i := range right {
		p.Boxes = append(p.Boxes, Box{p.W - margin - boxWidth - standIn(i, right), start + i*(height+apart), boxWidth, height})
	}
	for i := bottom - 1; i >= 0; i-- {
		p.Boxes = append(p.Boxes, across(bottom, i, p.H-margin-height))
	}
	for i := left - 1; i >= 0; i-- {
		p.Boxes = append(p.Boxes, Box{margin + standIn(i, left), start + i*(height+apart), boxWidth, height})
	}
	if n == 2 {
		p.Boxes[0], p.Boxes[1] = p.Boxes[1], p.Boxes[0]
	}
	return p
}

// standIn is how far a box of a side stands in: the more the farther it is from the
// middle of the side, so that lines to others of the side run free.
func standIn(i, count int) int {
	if count < 3 {
		return 0
	}
	off := 2*i - (count - 1) // from -(count-1) to count-1
	return bend * off * off / ((count - 1) * (count - 1))
}

// point is one in the picture.
type point struct{ x, y int }

// end is where lines of a box begin.
type end struct{ point }

// inward is the middle of that side of a box that looks to the middle of the picture.
func (p *Picture) inward(b Box) end {
	switch left, right := b.X < margin+boxWidth, b.X+b.W > p.W-margin-boxWidth; {
	case left && !right || p.W == 2*margin+boxWidth:
		return end{point{b.X + b.W, b.Y + b.H/2}}
	case right && !left:
		return end{point{b.X, b.Y + b.H/2}}
	case b.Y < p.H/2:
		return end{point{b.X + b.W/2, b.Y + b.H}}
	}
	return end{point{b.X + b.W/2, b.Y}}
}

// curve is a line from a to b that is drawn to a third point.
type curve struct{ a, to, b point }

// between is the line between two ends. It keeps away from the boxes that are between
// them by a way through the middle, the more the farther they are apart.
func (p *Picture) between(a, b end) curve {
	mid := point{(a.x + b.x) / 2, (a.y + b.y) / 2}
	far := min(400, abs(a.x-b.x)+abs(a.y-b.y))
	part := 150 + far // of a thousand
	return curve{a.point, point{mid.x + (p.W/2-mid.x)*part/1000, mid.y + (p.H/2-mid.y)*part/1000}, b.point}
}

func abs(n int) int { return max(n, -n) }

// String is the curve as SVG has it.
func (c curve) String() string {
	return fmt.Sprintf("M%d %dQ%d %d %d %d", c.a.x, c.a.y, c.to.x, c.to.y, c.b.x, c.b.y)
}

// at is the point of the curve after so many hundredths of it.
func (c curve) at(t int) point {
	u := 100 - t
	one := func(a, to, b int) int { return (u*u*a + 2*u*t*to + t*t*b) / 10_000 }
	return point{one(c.a.x, c.to.x, c.b.x), one(c.a.y, c.to.y, c.b.y)}
}

// tried is where on its line a label may be, the best first.
var tried = []int{50, 42, 58, 34, 66, 26, 74, 46, 54, 38, 62, 30, 70, 20, 80}

// label finds room for labels, those of first links before the others.
func (p *Picture) label(links []Link, curves []curve) {
	taken := append([]Box(nil), p.Boxes...)
	all := Box{0, 0, p.W, p.H}
	for _, first := range []bool{true, false} {
		for i, l := range links {
			if l.Wide == 0 || l.First != first {
				continue
			}
			for _, t := range tried {
				at := curves[i].at(t)
				box := Box{at.x - l.Wide/2, at.y - labelHeight/2, l.Wide, labelHeight}
				if box.Within(all) && !overlapsAny(box, taken) {
					p.Lines[i].Label = box
					taken = append(taken, box)
					break
				}
			}
		}
	}
}

func overlapsAny(b Box, taken []Box) bool {
	for _, o := range taken {
		if b.Overlaps(o) {
			return true
		}
	}
	return false
}
