//go:build !unix

package cli

// ignoreFileLimit has nothing to do: there are no such limits here.
func ignoreFileLimit() {}
