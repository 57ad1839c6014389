package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of schemas and of data.
const maxDepth = 64

// copier copies JSON values into the few Go types that the rest of the
// package handles: nil, bool, string, int64, uint64, float64, []any and
// map[string]any.
type copier struct {
	values int // how many values a copy may hold; 0 for any number
	seen   int
}

func (c *copier) copy(v any, depth int) (any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("must be nested at most %d deep", maxDepth)
	}
	if c.seen++; c.values > 0 && c.seen > c.values {
		return nil, fmt.Errorf("must hold at most %d values", c.values)
	}
	switch v := v.(type) {
	case nil, bool:
		return v, nil
	case string:
		return text(v)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			var err error
			if out[i], err = c.copy(item, depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if _, err := text(name); err != nil {
				return nil, err
			}
			var err error
			if out[name], err = c.copy(member, depth-1); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return number(v)
	}
}

func text(s string) (any, error) {
	if !utf8.ValidString(s) {
		return nil, errors.New("must hold only text in UTF-8")
	}
	return s, nil
}

// number returns a number of ordinary size and precision. A decimal text may
// stand for one that needs a million digits to write out.
func number(v any) (any, error) {
	switch v := v.(type) {
	case int:
		return int64(v), nil
	case int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return v, nil
	case float32:
		return finite(float64(v))
	case float64:
		return finite(v)
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
		if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
			return n, nil
		}
		n, err := strconv.ParseFloat(v.String(), 64)
		if err != nil {
			return nil, errors.New("must hold only numbers of ordinary size")
		}
		return finite(n)
	}
	return nil, fmt.Errorf("must be JSON, and holds a value of type %T", v)
}

func finite(n float64) (any, error) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return nil, errors.New("must hold only numbers of ordinary size")
	}
	return n, nil
}
