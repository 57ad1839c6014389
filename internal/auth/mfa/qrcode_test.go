package mfa

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"

	"github.com/boombuler/barcode/qr"
)

func TestQRCode(t *testing.T) {
	short := ProvisioningURL("netkeep", "alice", NewSecret())
	for _, text := range []string{"", short, short + strings.Repeat("x", 300), strings.Repeat("x", 2331)} {
		data, err := QRCode(text)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if img.Bounds() != image.Rect(0, 0, 256, 256) {
			t.Fatalf("image has bounds %v", img.Bounds())
		}
		code, err := qr.Encode(text, qr.M, qr.Unicode)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, img, code)
	}
}

// compare checks every pixel: those of the code, scaled by a whole number and
// centred, and white around it.
func compare(t *testing.T, img, code image.Image) {
	t.Helper()
	modules := code.Bounds().Dx()
	scale := 256 / (modules + 8)
	corner := (256 - scale*modules) / 2
	if scale < 1 || corner < 4*scale {
		t.Errorf("%d modules leave a margin of %d pixels at scale %d", modules, corner, scale)
	}
	black, white := color.RGBA{A: 255}, color.RGBA{R: 255, G: 255, B: 255, A: 255}
	for y := range 256 {
		for x := range 256 {
			want := white
			at := image.Pt(x-corner, y-corner)
			if at.In(image.Rect(0, 0, scale*modules, scale*modules)) && code.At(at.X/scale, at.Y/scale) == color.Black {
				want = black
			}
			if got := img.At(x, y); got != want {
				t.Fatalf("pixel %d,%d of a code of %d modules is %v, want %v", x, y, modules, got, want)
			}
		}
	}
}

func TestQRCodeTooLong(t *testing.T) {
	secret := NewSecret()
	data, err := QRCode(ProvisioningURL("netkeep", strings.Repeat("x", 2331), secret))
	if err == nil || data != nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %d bytes, %v", len(data), err)
	}
}
