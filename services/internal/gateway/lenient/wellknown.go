package lenient

import (
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

type decodeFunc func(protoreflect.FieldDescriptor, any, string) (protoreflect.Value, bool, error)

// wellKnown decodes the messages that have their own JSON form.
var wellKnown = map[protoreflect.FullName]decodeFunc{
	"google.protobuf.Timestamp":   timestamp,
	"google.protobuf.Duration":    duration,
	"google.protobuf.FieldMask":   fieldMask,
	"google.protobuf.DoubleValue": wrapper,
	"google.protobuf.FloatValue":  wrapper,
	"google.protobuf.Int64Value":  wrapper,
	"google.protobuf.UInt64Value": wrapper,
	"google.protobuf.Int32Value":  wrapper,
	"google.protobuf.UInt32Value": wrapper,
	"google.protobuf.BoolValue":   wrapper,
	"google.protobuf.StringValue": wrapper,
	"google.protobuf.BytesValue":  wrapper,
	"google.protobuf.Struct":      canonical,
	"google.protobuf.Value":       canonical,
	"google.protobuf.ListValue":   canonical,
	"google.protobuf.Any":         canonical,
}

// isJSONValue reports a field for which null is a value.
func isJSONValue(field protoreflect.FieldDescriptor) bool {
	return field.Message() != nil && field.Message().FullName() == "google.protobuf.Value"
}

// timeLayouts are the time formats in the contract's examples and its clients. Each also accepts fractions.
var timeLayouts = []string{
	time.RFC3339,
	"2006-01-02T15:04:05-0700",
	"2006-01-02T15:04:05",
	"2006-01-02 15:04:05Z07:00",
	"2006-01-02 15:04:05-0700",
	"2006-01-02 15:04:05",
	"2006-01-02",
}

// lostPlus matches a zone with a plus sign that was decoded as a space, as in an unescaped query.
var lostPlus = regexp.MustCompile(` (\d\d:?\d\d)$`)

// timestamp accepts the layouts above, without a zone as UTC, and seconds since 1970. Year 1 (Go's zero time) and 0
// mean "not given".
func timestamp(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, bool, error) {
	at, ok := parseTime(value)
	if !ok {
		return protoreflect.Value{}, false, wrongType(field, path, "a time like 2026-05-04T10:20:30.123456Z", value)
	}
	if at.IsZero() || at.Year() <= 1 {
		return protoreflect.Value{}, false, nil
	}
	return protoreflect.ValueOfMessage(timestamppb.New(at).ProtoReflect()), true, nil
}

func parseTime(value any) (time.Time, bool) {
	text := strings.TrimSpace(asText(value))
	if text == "" {
		_, isText := value.(string)
		return time.Time{}, isText
	}
	if seconds, ok := parseFloat(text, 64); ok {
		if seconds == 0 {
			return time.Time{}, true
		}
		const year9999 = 253402300799
		if math.Abs(seconds) > year9999 {
			return time.Time{}, false
		}
		whole, fraction := math.Modf(seconds)
		return time.Unix(int64(whole), int64(math.Round(fraction*1e6))*1e3).UTC(), true
	}
	if strings.Contains(text, ":") && strings.Count(text, ":") > 2 {
		text = lostPlus.ReplaceAllString(text, "+$1")
	}
	for _, layout := range timeLayouts {
		if at, err := time.Parse(layout, text); err == nil && at.UTC().Year() <= 9999 && at.UTC().Year() >= 0 {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// duration accepts protobuf's form ("1.5s"), Go's ("1m30s") and a number of seconds.
func duration(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, bool, error) {
	text := strings.TrimSpace(asText(value))
	if text == "" {
		if _, isText := value.(string); isText {
			return protoreflect.Value{}, false, nil
		}
	}
	parsed, err := time.ParseDuration(text)
	if seconds, ok := parseFloat(text, 64); ok && math.Abs(seconds) < math.MaxInt64/1e9 {
		parsed, err = time.Duration(seconds*1e9), nil
	}
	if err != nil {
		return protoreflect.Value{}, false, wrongType(field, path, `a duration like "1.5s"`, value)
	}
	return protoreflect.ValueOfMessage(durationpb.New(parsed).ProtoReflect()), true, nil
}

// fieldMask accepts the comma-separated form, with names in either case.
func fieldMask(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, bool, error) {
	text, ok := value.(string)
	if !ok {
		return protoreflect.Value{}, false, wrongType(field, path, "field names joined by commas", value)
	}
	mask := &fieldmaskpb.FieldMask{}
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			mask.Paths = append(mask.Paths, snake(name))
		}
	}
	return protoreflect.ValueOfMessage(mask.ProtoReflect()), len(mask.GetPaths()) > 0, nil
}

func snake(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

func wrapper(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, bool, error) {
	inner := field.Message().Fields().ByNumber(1)
	decoded, ok, err := scalar(inner, value, path)
	if err != nil || !ok {
		return protoreflect.Value{}, false, err
	}
	msg := newMessage(field)
	msg.Set(inner, decoded)
	return protoreflect.ValueOfMessage(msg), true, nil
}

// isFreeForm reports the messages that hold arbitrary JSON.
func isFreeForm(message protoreflect.MessageDescriptor) bool {
	switch message.FullName() {
	case "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue", "google.protobuf.Any":
		return true
	}
	return false
}

// canonical converts free-form JSON to a message.
func canonical(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, bool, error) {
	msg, err := freeForm(field, value)
	if err != nil {
		want := map[protoreflect.FullName]string{
			"google.protobuf.Struct":    "an object",
			"google.protobuf.ListValue": "a list",
			"google.protobuf.Any":       `an object with a known "@type"`,
		}[field.Message().FullName()]
		if want == "" {
			want = "a JSON value"
		}
		return protoreflect.Value{}, false, wrongType(field, path, want, value)
	}
	return protoreflect.ValueOfMessage(msg), true, nil
}

// freeForm converts a tree of JSON values to a message. protojson converts an Any, because it knows the types.
func freeForm(field protoreflect.FieldDescriptor, value any) (protoreflect.Message, error) {
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch name := field.Message().FullName(); {
	case name == "google.protobuf.Struct" && isObject:
		made, err := structpb.NewStruct(object)
		return made.ProtoReflect(), err
	case name == "google.protobuf.ListValue" && isList:
		made, err := structpb.NewList(list)
		return made.ProtoReflect(), err
	case name == "google.protobuf.Value":
		made, err := structpb.NewValue(value)
		return made.ProtoReflect(), err
	case name != "google.protobuf.Any":
		return nil, errNotFreeForm
	}
	msg := newMessage(field)
	encoded, err := json.Marshal(value)
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: 2 * MaxDepth}.Unmarshal(encoded, msg.Interface())
	}
	return msg, err
}

var errNotFreeForm = errors.New("JSON of another kind")
