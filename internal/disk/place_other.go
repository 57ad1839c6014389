//go:build !unix

package disk

// Place is empty: it cannot be told.
func Place(string) string { return "" }
