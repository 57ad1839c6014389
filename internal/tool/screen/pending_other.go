//go:build !unix

package screen

import "os"

// pending cannot be told here.
func pending(*os.File) bool { return false }
