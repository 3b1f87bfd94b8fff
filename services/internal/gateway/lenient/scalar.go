package lenient

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/services/internal/apierr"
)

// scalar converts a string, json.Number or bool to a field's scalar type. false means "not given", which is the meaning
// of an empty string for every type.
func scalar(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, bool, error) {
	if text, ok := value.(string); ok && text == "" {
		return protoreflect.Value{}, false, nil
	}
	var decoded protoreflect.Value
	var err error
	switch field.Kind() {
	case protoreflect.StringKind:
		decoded, err = text(field, value, path)
	case protoreflect.BoolKind:
		decoded, err = boolean(field, value, path)
	case protoreflect.EnumKind:
		decoded, err = enum(field, value, path)
	case protoreflect.BytesKind:
		decoded, err = raw(field, value, path)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		decoded, err = float(field, value, path)
	default:
		decoded, err = integer(field, value, path)
	}
	return decoded, err == nil, err
}

func text(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, error) {
	switch v := value.(type) {
	case json.Number:
		return protoreflect.ValueOfString(v.String()), nil
	case string:
		if !utf8.ValidString(v) {
			return protoreflect.Value{}, apierr.InvalidArgument(path, "%s must be valid UTF-8", path)
		}
		return protoreflect.ValueOfString(v), nil
	}
	return protoreflect.Value{}, wrongType(field, path, "a string", value)
}

func boolean(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, error) {
	if v, ok := value.(bool); ok {
		return protoreflect.ValueOfBool(v), nil
	}
	switch strings.ToLower(asText(value)) {
	case "true", "1":
		return protoreflect.ValueOfBool(true), nil
	case "false", "0":
		return protoreflect.ValueOfBool(false), nil
	}
	return protoreflect.Value{}, wrongType(field, path, "true or false", value)
}

// enum accepts the name in any case, with or without the enum's common prefix, or the number.
func enum(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, error) {
	word := asText(value)
	values := field.Enum().Values()
	if number, err := strconv.ParseInt(word, 10, 32); err == nil {
		if known := values.ByNumber(protoreflect.EnumNumber(number)); known != nil {
			return protoreflect.ValueOfEnum(known.Number()), nil
		}
	} else if word != "" {
		prefix := enumPrefix(field.Enum())
		for i := range values.Len() {
			name := string(values.Get(i).Name())
			if strings.EqualFold(word, name) || strings.EqualFold(word, strings.TrimPrefix(name, prefix)) {
				return protoreflect.ValueOfEnum(values.Get(i).Number()), nil
			}
		}
	}
	return protoreflect.Value{}, wrongType(field, path, "one of "+apierr.FieldWords(field), value)
}

// enumPrefix is the prefix of every value by buf's naming rule: the enum's name, up to UNSPECIFIED.
func enumPrefix(enum protoreflect.EnumDescriptor) string {
	zero := enum.Values().ByNumber(0)
	if zero == nil {
		return ""
	}
	prefix, found := strings.CutSuffix(string(zero.Name()), "UNSPECIFIED")
	if !found {
		return ""
	}
	return prefix
}

func raw(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, error) {
	encoded, ok := value.(string)
	if ok {
		unpadded := strings.TrimRight(encoded, "=")
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if decoded, err := encoding.DecodeString(unpadded); err == nil {
				return protoreflect.ValueOfBytes(decoded), nil
			}
		}
	}
	return protoreflect.Value{}, wrongType(field, path, "base64", value)
}

func float(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, error) {
	bits := 64
	if field.Kind() == protoreflect.FloatKind {
		bits = 32
	}
	number, ok := parseFloat(asText(value), bits)
	if !ok {
		return protoreflect.Value{}, wrongType(field, path, "a number", value)
	}
	if bits == 32 {
		return protoreflect.ValueOfFloat32(float32(number)), nil
	}
	return protoreflect.ValueOfFloat64(number), nil
}

// parseFloat accepts decimal numbers only. strconv also accepts Inf, NaN, hexadecimal and underscores.
func parseFloat(s string, bits int) (float64, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789+-.eE") != "" {
		return 0, false
	}
	number, err := strconv.ParseFloat(s, bits)
	return number, err == nil
}

func integer(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, error) {
	least, most, unsigned := limits(field.Kind())
	s := strings.TrimSpace(asText(value))
	if unsigned {
		number, err := strconv.ParseUint(s, 10, 64)
		if whole, ok := wholeFloat(s); err != nil && ok && whole >= 0 {
			number, err = uint64(whole), nil
		}
		if err == nil && number <= most {
			if most == math.MaxUint32 {
				return protoreflect.ValueOfUint32(uint32(number)), nil
			}
			return protoreflect.ValueOfUint64(number), nil
		}
	} else {
		number, err := strconv.ParseInt(s, 10, 64)
		if whole, ok := wholeFloat(s); err != nil && ok {
			number, err = whole, nil
		}
		if err == nil && number >= least && number <= int64(most) {
			if most == math.MaxInt32 {
				return protoreflect.ValueOfInt32(int32(number)), nil
			}
			return protoreflect.ValueOfInt64(number), nil
		}
	}
	return protoreflect.Value{}, wrongType(field, path, fmt.Sprintf("a whole number from %d to %d", least, most), value)
}

// wholeFloat parses 1.0 and 1e3, which some serializers write for whole numbers. It is exact below 2^53 only.
func wholeFloat(s string) (int64, bool) {
	number, ok := parseFloat(s, 64)
	if !ok || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
		return 0, false
	}
	return int64(number), true
}

func limits(kind protoreflect.Kind) (least int64, most uint64, unsigned bool) {
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return math.MinInt32, math.MaxInt32, false
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return 0, math.MaxUint32, true
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return 0, math.MaxUint64, true
	}
	return math.MinInt64, math.MaxInt64, false
}

// asText is a string or number as written, "" otherwise.
func asText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// notObject refuses a value of another type for a message or a map. The error does not repeat the value, which may be a
// credential.
func notObject(path string, value any) error {
	what := "something else"
	switch value.(type) {
	case string:
		what = "a string"
	case json.Number:
		what = "a number"
	case bool:
		what = "true or false"
	case []any:
		what = "a list"
	}
	return apierr.InvalidArgument(path, "%s must be an object, got %s", path, what)
}

// wrongType refuses value. want describes what the field accepts. The error does not repeat the value of a credential.
func wrongType(field protoreflect.FieldDescriptor, path, want string, value any) error {
	if apierr.IsSecret(field) {
		return apierr.InvalidArgument(path, "%s must be %s", path, want)
	}
	return apierr.InvalidArgument(path, "%s must be %s, got %s", path, want, shown(value))
}

// shown is a JSON value in an error text.
func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		text := v.String()
		if len(text) > 40 {
			return text[:40] + "…"
		}
		return text
	case string:
		return apierr.Quote(v)
	case []any:
		return "a list"
	}
	return "an object"
}
