package console

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// qrView is a QR code as a drawing: how many modules it has from edge to edge, with the
// margin that readers need, and the dark ones as one path.
type qrView struct {
	Size int
	Path string
}

// quietZone is how many light modules are around a code.
const quietZone = 4

// qrCode draws a text; nil if it is too long for a code.
func qrCode(text string) *qrView {
	code, err := qr.Encode(text, qr.L, qr.Auto)
	if err != nil {
		return nil
	}
	size := code.Bounds().Dx()
	dark := func(x, y int) bool {
		return x < size && color.GrayModel.Convert(code.At(x, y)).(color.Gray).Y < 128
	}
	var b strings.Builder
	for y := range size {
		for x := 0; x < size; x++ {
			from := x
			for dark(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", from+quietZone, y+quietZone, x-from, x-from)
			}
		}
	}
	return &qrView{size + 2*quietZone, b.String()}
}
