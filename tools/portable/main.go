// Portable type-checks the packages that it is given, with all that they import,
// for other systems. A build would find the same mistakes and takes many times
// as long on a machine that has compiled nothing for those systems.
package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/packages"
)

func main() {
	wrong := 0
	for _, target := range []string{"windows/amd64", "windows/arm64", "darwin/amd64", "darwin/arm64"} {
		system, arch, _ := strings.Cut(target, "/")
		all, err := packages.Load(&packages.Config{
			Mode: packages.LoadAllSyntax,
			Env:  append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0"),
		}, os.Args[1:]...)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", target, err)
			os.Exit(1)
		}
		if n := packages.PrintErrors(all); n > 0 {
			fmt.Fprintf(os.Stderr, "%s: %d mistakes\n", target, n)
			wrong += n
		}
	}
	if wrong > 0 {
		os.Exit(1)
	}
}
