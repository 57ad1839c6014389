package screen

import (
	"fmt"
	"image"
	"image/color"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// quiet is how many modules of nothing surround a code.
const quiet = 2

// QR draws a text as a code that a telephone can read, dark on light whatever
// the colours of the terminal are.
func QR(text string) (string, error) {
	code, err := qr.Encode(text, qr.L, qr.Auto)
	if err != nil {
		return "", fmt.Errorf("the text does not fit into a QR code: %w", err)
	}
	dark := func(x, y int) bool {
		at := image.Pt(x, y)
		return at.In(code.Bounds()) && color.GrayModel.Convert(code.At(x, y)).(color.Gray).Y < 128
	}
	size := code.Bounds().Dx()
	var b strings.Builder
	// Two rows of modules are one line of text.
	for y := -quiet; y < size+quiet; y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := -quiet; x < size+quiet; x++ {
			switch upper, lower := dark(x, y), dark(x, y+1); {
			case upper && lower:
				b.WriteString("█")
			case upper:
				b.WriteString("▀")
			case lower:
				b.WriteString("▄")
			default:
				b.WriteByte(' ')
			}
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String(), nil
}
