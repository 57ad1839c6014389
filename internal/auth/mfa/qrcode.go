package mfa

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"
)

const (
	imageSide = 256 // pixels
	margin    = 4   // modules of white that readers want on each side
)

// QRCode returns a PNG image, 256 pixels wide and high, of the QR code of a
// URL. Over 2331 bytes is too much for one.
func QRCode(url string) ([]byte, error) {
	code, err := qr.Encode(url, qr.M, qr.Unicode)
	if err != nil {
		return nil, fmt.Errorf("encoding %d bytes as a QR code: %w", len(url), err)
	}
	modules := code.Bounds().Dx()
	side := modules * (imageSide / (modules + 2*margin))
	scaled, err := barcode.Scale(code, side, side)
	if err != nil {
		return nil, fmt.Errorf("scaling a QR code: %w", err)
	}
	img := image.NewPaletted(image.Rect(0, 0, imageSide, imageSide), color.Palette{color.White, color.Black})
	corner := (imageSide - side) / 2
	draw.Draw(img, image.Rect(corner, corner, corner+side, corner+side), scaled, scaled.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		return nil, fmt.Errorf("writing a QR image: %w", err)
	}
	return out.Bytes(), nil
}
