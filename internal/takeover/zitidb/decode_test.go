package zitidb

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"
	"time"
)

// encoded is how a value is stored.
func encoded(t *testing.T, v any) []byte {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return []byte{typeNull}
	case bool:
		if v {
			return []byte{typeBool, 1}
		}
		return []byte{typeBool, 0}
	case int32:
		return binary.LittleEndian.AppendUint32([]byte{typeInt32}, uint32(v))
	case int64:
		return binary.LittleEndian.AppendUint64([]byte{typeInt64}, uint64(v))
	case float64:
		return binary.LittleEndian.AppendUint64([]byte{typeFloat}, math.Float64bits(v))
	case string:
		return append([]byte{typeText}, v...)
	case time.Time:
		text, err := v.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{typeTime}, text...)
	}
	t.Fatalf("%T is no value", v)
	return nil
}

// FuzzValue reads bytes as a value: what it is refused for is said, and what it is comes
// back from what is stored for that.
func FuzzValue(f *testing.F) {
	for _, v := range []any{nil, true, false, int32(-7), int64(math.MaxInt64), 1.5, "", "ünï", time.Unix(1_700_000_000, 5).UTC()} {
		f.Add(encoded(&testing.T{}, v))
	}
	f.Add([]byte{})
	f.Add([]byte{typeTime, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99})
	f.Add([]byte{99, 1})
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := value(text)
		if err != nil {
			if v != nil || err.Error() == "" {
				t.Errorf("%v comes with %v", v, err)
			}
			return
		}
		again, err := value(encoded(t, v))
		if err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%#v is read again as %#v, %v", v, again, err)
		}
	})
}
