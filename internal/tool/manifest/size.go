package manifest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// readFile reads a file that is not larger than one may be. Of one that has a text
// in it that is too long, only so much is read that this can be told: what cannot
// be taken is not to fill the memory.
func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size := int64(maxFile)
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
		if size > maxFile {
			return nil, fmt.Errorf("%s has %d bytes; %d is the most that is read: make several files of it", name, size, maxFile)
		}
		if found := tooLong(bufio.NewReaderSize(file, 64<<10)); found.line > 0 {
			size = found.offset
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		text := make([]byte, size)
		n, err := io.ReadFull(file, text)
		if err == io.ErrUnexpectedEOF { // somebody made it shorter
			err = nil
		}
		return text[:n], err
	}
	return io.ReadAll(io.LimitReader(file, maxFile+1))
}

// place is where something is in a stream; its line is 0 for nowhere.
type place struct {
	line   int
	offset int64
}

// tooLong finds a text that is longer than one may be. It is rough: it knows
// quotes and comments, and takes what is between two marks for one text.
func tooLong(from *bufio.Reader) (found place) {
	line, begun, offset, length := 1, 1, int64(0), 0
	quote, last := byte(0), byte('\n')
	comment, escaped := false, false
	for {
		b, err := from.ReadByte()
		if err != nil {
			return place{}
		}
		offset++
		if b == '\n' {
			line++
		}
		switch {
		case comment:
			comment = b != '\n'
			length, begun = 0, line
		case quote != 0 && escaped:
			escaped = false
			length++
		case quote != 0:
			escaped = quote == '"' && b == '\\'
			if length++; b == quote {
				quote, length = 0, 0
			}
		case (b == '"' || b == '\'') && strings.IndexByte("\n:,[{-", last) >= 0:
			quote, length, begun = b, 0, line
		case b == '#' && (last == '\n' || length == 0):
			comment = true
		case strings.IndexByte("\n,[]{}", b) >= 0:
			length, begun = 0, line
		default:
			length++
		}
		if b != ' ' && b != '\t' && b != '\r' || b == '\n' {
			last = b
		}
		if length > maxText {
			return place{begun, offset}
		}
	}
}
