package console

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compressors are kept: a new one costs more than a page.
var compressors = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err)
	}
	return w
}}

// packed is a page as it is sent, compressed if the browser takes that and nothing that
// others choose is in it. How short a page becomes tells how much of one part of it is
// like another: who can lead a browser to an address, so that some of the page is of its
// choice, and sees the length on the network, finds out what else is there, letter by
// letter, such as the token of forms or an invitation. So a page whose address has a query
// and one that answers a form are sent as they are. What is left of an address is the path
// of a page or record that exists.
func (v *visit) packed(page []byte) []byte {
	if v.r.URL.RawQuery != "" || v.r.Method == http.MethodPost || !takesGzip(v.r) {
		return page
	}
	var b bytes.Buffer
	w := compressors.Get().(*gzip.Writer)
	defer compressors.Put(w)
	w.Reset(&b)
	if _, err := w.Write(page); err != nil {
		return page
	}
	if err := w.Close(); err != nil {
		return page
	}
	v.w.Header().Set("Content-Encoding", "gzip")
	return b.Bytes()
}

// takesGzip reports whether a browser says that it can read what gzip makes.
func takesGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for word := range strings.SplitSeq(header, ",") {
			name, weight, weighs := strings.Cut(word, ";")
			if strings.TrimSpace(name) != "gzip" {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
			return !weighs || err == nil && q > 0
		}
	}
	return false
}

// shrunk is a file as small as gzip makes it. It holds no secret.
func shrunk(data []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err)
	}
	if _, err := w.Write(data); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}
