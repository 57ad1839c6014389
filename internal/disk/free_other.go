//go:build !unix

package disk

// Free is how many bytes fit on the disk of a directory; not ok, as nobody has
// said how to tell that here.
func Free(string) (n int64, ok bool) { return 0, false }
