package jsonappend

import (
	"math"

	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Empty appends {}.
func Empty(b []byte, _ *emptypb.Empty) []byte {
	return append(b, "{}"...)
}

// Struct appends s as the object that it represents, keys sorted.
func Struct(b []byte, s *structpb.Struct) []byte {
	return StringMap(b, s.GetFields(), Value)
}

// ListValue appends l as the array that it represents.
func ListValue(b []byte, l *structpb.ListValue) []byte {
	return List(b, l.GetValues(), Value)
}

// Value appends v as the JSON value that it represents. Values that JSON cannot express (no kind set, NaN, infinities)
// become null.
func Value(b []byte, v *structpb.Value) []byte {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return Bool(b, kind.BoolValue)
	case *structpb.Value_NumberValue:
		if math.IsNaN(kind.NumberValue) || math.IsInf(kind.NumberValue, 0) {
			return append(b, "null"...)
		}
		return Double(b, kind.NumberValue)
	case *structpb.Value_StringValue:
		return String(b, kind.StringValue)
	case *structpb.Value_StructValue:
		return Struct(b, kind.StructValue)
	case *structpb.Value_ListValue:
		return ListValue(b, kind.ListValue)
	default:
		return append(b, "null"...)
	}
}

// NullValue appends null, the only value of google.protobuf.NullValue.
func NullValue(b []byte, _ structpb.NullValue) []byte {
	return append(b, "null"...)
}

// FieldMask appends m as one string: its paths in lower camel case, joined by commas.
func FieldMask(b []byte, m *fieldmaskpb.FieldMask) []byte {
	var joined []byte
	for i, path := range m.GetPaths() {
		if i > 0 {
			joined = append(joined, ',')
		}
		joined = appendCamelCase(joined, path)
	}
	return String(b, string(joined))
}

// appendCamelCase replaces each "_x" by "X": protobuf's mapping of field names to JSON names.
func appendCamelCase(b []byte, path string) []byte {
	upper := false
	for i := range len(path) {
		c := path[i]
		if c == '_' {
			upper = true
			continue
		}
		if upper && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper = false
		b = append(b, c)
	}
	return b
}

// BoolValue appends the wrapped value.
func BoolValue(b []byte, v *wrapperspb.BoolValue) []byte { return Bool(b, v.GetValue()) }

// StringValue appends the wrapped value.
func StringValue(b []byte, v *wrapperspb.StringValue) []byte { return String(b, v.GetValue()) }

// BytesValue appends the wrapped value.
func BytesValue(b []byte, v *wrapperspb.BytesValue) []byte { return Bytes(b, v.GetValue()) }

// Int32Value appends the wrapped value.
func Int32Value(b []byte, v *wrapperspb.Int32Value) []byte { return Int32(b, v.GetValue()) }

// UInt32Value appends the wrapped value.
func UInt32Value(b []byte, v *wrapperspb.UInt32Value) []byte { return Uint32(b, v.GetValue()) }

// Int64Value appends the wrapped value as a JSON number.
func Int64Value(b []byte, v *wrapperspb.Int64Value) []byte { return Int64(b, v.GetValue()) }

// UInt64Value appends the wrapped value as a JSON number.
func UInt64Value(b []byte, v *wrapperspb.UInt64Value) []byte { return Uint64(b, v.GetValue()) }

// QuotedInt64Value appends the wrapped value in quotes.
func QuotedInt64Value(b []byte, v *wrapperspb.Int64Value) []byte { return QuotedInt64(b, v.GetValue()) }

// QuotedUInt64Value appends the wrapped value in quotes.
func QuotedUInt64Value(b []byte, v *wrapperspb.UInt64Value) []byte {
	return QuotedUint64(b, v.GetValue())
}

// FloatValue appends the wrapped value.
func FloatValue(b []byte, v *wrapperspb.FloatValue) []byte { return Float(b, v.GetValue()) }

// DoubleValue appends the wrapped value.
func DoubleValue(b []byte, v *wrapperspb.DoubleValue) []byte { return Double(b, v.GetValue()) }
