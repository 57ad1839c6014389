package etcdstore

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// release lets go of the pages of a file that are mapped. Whoever looks at one has it back.
func release(file string) {
	for _, in := range placesOf(file) {
		// It fails where a system does not know of it, and everything stays as it is.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(in.from), uintptr(in.to-in.from), syscall.MADV_DONTNEED)
	}
}

// stretchOf is where a part of a file is in memory.
type stretchOf struct{ from, to uint64 }

// placesOf are those of a file that is only read through them: nothing is lost with a page.
func placesOf(file string) (places []stretchOf) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer maps.Close()
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		// from-to, what is allowed, offset, device, inode, name
		line, is := strings.CutSuffix(lines.Text(), " "+file)
		columns := strings.Fields(line)
		if !is || len(columns) != 5 || columns[1] != "r--s" {
			continue
		}
		first, last, _ := strings.Cut(columns[0], "-")
		from, bad := strconv.ParseUint(first, 16, 64)
		to, worse := strconv.ParseUint(last, 16, 64)
		if bad == nil && worse == nil {
			places = append(places, stretchOf{from, to})
		}
	}
	return places
}
