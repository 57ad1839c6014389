package filter

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"
)

// Type is the type of a value and of the field that holds it.
type Type uint8

// The types. None is the type of an absent value, Map that of a field whose
// elements are addressed by key and have types of their own.
const (
	None Type = iota
	String
	Int
	Float
	Bool
	Time
	Map
)

func (t Type) String() string {
	switch t {
	case None:
		return "null"
	case String:
		return "string"
	case Int, Float:
		return "number"
	case Bool:
		return "bool"
	case Time:
		return "datetime"
	case Map:
		return "map"
	}
	return "type " + strconv.Itoa(int(t))
}

// Value is one value of a field. The zero Value is absent. Values are plain
// and comparable with ==; making one allocates nothing.
type Value struct {
	text string
	bits int64 // Int: itself; Float: its bits; Bool: 0 or 1; Time: seconds since 1970
	nano int32 // Time: nanoseconds within the second
	typ  Type
}

// StringValue returns a text.
func StringValue(s string) Value { return Value{typ: String, text: s} }

// IntValue returns an integer.
func IntValue(i int64) Value { return Value{typ: Int, bits: i} }

// FloatValue returns a floating-point number.
func FloatValue(f float64) Value { return Value{typ: Float, bits: int64(math.Float64bits(f))} }

// BoolValue returns a truth value.
func BoolValue(b bool) Value {
	if b {
		return Value{typ: Bool, bits: 1}
	}
	return Value{typ: Bool}
}

// TimeValue returns an instant; its zone is forgotten.
func TimeValue(t time.Time) Value {
	return Value{typ: Time, bits: t.Unix(), nano: int32(t.Nanosecond())}
}

// AnyValue returns the value of a decoded JSON scalar or of one of the other
// types that fields have. Anything else, nil included, is absent.
func AnyValue(v any) Value {
	switch v := v.(type) {
	case string:
		return StringValue(v)
	case bool:
		return BoolValue(v)
	case float64:
		return FloatValue(v)
	case int64:
		return IntValue(v)
	case int:
		return IntValue(int64(v))
	case time.Time:
		return TimeValue(v)
	}
	return Value{}
}

// Type returns the value's type, None if it is absent.
func (v Value) Type() Type { return v.typ }

// Int returns the integer of an Int.
func (v Value) Int() int64 { return v.bits }

// Float returns the number of a Float.
func (v Value) Float() float64 { return math.Float64frombits(uint64(v.bits)) }

// Bool returns the truth of a Bool.
func (v Value) Bool() bool { return v.bits != 0 }

// Time returns the instant of a Time, in UTC.
func (v Value) Time() time.Time { return time.Unix(v.bits, int64(v.nano)).UTC() }

// String returns the text of a String, and of other values the text by which
// a person would write them.
func (v Value) String() string {
	switch v.typ {
	case String:
		return v.text
	case Int, Float:
		return string(v.appendDecimal(nil))
	case Bool:
		return strconv.FormatBool(v.Bool())
	case Time:
		return v.Time().Format(time.RFC3339Nano)
	}
	return "null"
}

// appendDecimal appends the decimal text of a number, without exponent.
func (v Value) appendDecimal(b []byte) []byte {
	if v.typ == Int {
		return strconv.AppendInt(b, v.bits, 10)
	}
	return strconv.AppendFloat(b, v.Float(), 'f', -1, 64)
}

func (v Value) isNumber() bool { return v.typ == Int || v.typ == Float }

// compareNumbers orders two numbers of either type, exactly.
func compareNumbers(a, b Value) int {
	switch {
	case a.typ == Int && b.typ == Int:
		return cmp.Compare(a.bits, b.bits)
	case a.typ == Int:
		return compareIntFloat(a.bits, b.Float())
	case b.typ == Int:
		return -compareIntFloat(b.bits, a.Float())
	}
	return cmp.Compare(a.Float(), b.Float())
}

// compareIntFloat does not turn i into a float: above 2^53 that would make
// different integers equal.
func compareIntFloat(i int64, f float64) int {
	switch {
	case f >= 1<<63:
		return -1
	case f < -1<<63 || math.IsNaN(f):
		return 1
	}
	whole := math.Floor(f)
	if c := cmp.Compare(i, int64(whole)); c != 0 || f == whole {
		return c
	}
	return -1
}

// canonical returns the one form that equal numbers share, so that numbers
// can be keys: an Int if the value is a whole number that an Int can hold.
func (v Value) canonical() Value {
	if v.typ != Float {
		return v
	}
	f := v.Float()
	if f >= -1<<63 && f < 1<<63 && f == math.Floor(f) {
		return IntValue(int64(f))
	}
	return v
}

// compareTimes orders two instants.
func compareTimes(a, b Value) int {
	if c := cmp.Compare(a.bits, b.bits); c != 0 {
		return c
	}
	return cmp.Compare(a.nano, b.nano)
}

// compareForSort orders the values of one field, the absent ones first.
func compareForSort(a, b Value) int {
	switch {
	case a.typ == None || b.typ == None:
		return cmp.Compare(a.typ, b.typ)
	case a.typ == String:
		return strings.Compare(a.text, b.text)
	case a.typ == Time:
		return compareTimes(a, b)
	case a.isNumber():
		return compareNumbers(a, b)
	}
	return cmp.Compare(a.bits, b.bits)
}
