package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. Its text has a unit, such as 64KiB, or none for
// bytes.
type Size int64

// units are what sizes are told in, the largest first.
var units = []struct {
	name string
	size Size
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func parseSize(text string) (Size, error) {
	factor := Size(1)
	for _, unit := range units {
		if number, ok := strings.CutSuffix(text, unit.name); ok {
			text, factor = number, unit.size
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > math.MaxInt64/int64(factor) {
		return 0, fmt.Errorf("%d is out of range", n)
	}
	return Size(n) * factor, nil
}

func (s Size) String() string {
	for _, unit := range units {
		if s != 0 && s%unit.size == 0 {
			return strconv.FormatInt(int64(s/unit.size), 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
