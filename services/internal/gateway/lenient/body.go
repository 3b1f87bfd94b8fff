package lenient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/services/internal/apierr"
)

// MaxDepth is how deep the objects and lists of a body may nest. No message of ours comes near.
const MaxDepth = 64

// Decoded says what a body held beyond the values that are now in the message.
type Decoded struct {
	// Present are the top-level fields that the body named with a value other than null, by field number.
	Present []protoreflect.FieldDescriptor
	// Unknown is how many names, at any depth, the message does not have.
	Unknown int
}

// Body reads a JSON body into msg, which should be empty. An empty body and null leave it as it is. Errors are
// apierr errors: MALFORMED_JSON with the position, INVALID_ARGUMENT with the path of the field.
func Body(data []byte, msg proto.Message) (Decoded, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) // some editors put a byte order mark first
	if len(data) == 0 {
		return Decoded{}, nil
	}
	if err := checkSyntax(data); err != nil {
		return Decoded{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return Decoded{}, apierr.MalformedJSON("the body is not valid JSON")
	}
	switch object := tree.(type) {
	case nil:
		return Decoded{}, nil
	case map[string]any:
		r := &reader{}
		present, err := r.message(msg.ProtoReflect(), object, "")
		return Decoded{Present: present, Unknown: r.unknown}, err
	}
	return Decoded{}, apierr.InvalidArgument("body", "the body must be a JSON object, got %s", shown(tree))
}

// checkSyntax reports the position of what is wrong, and refuses bodies that nest too deep before anything
// that recurses sees them.
func checkSyntax(data []byte) error {
	if offset := tooDeepAt(data); offset >= 0 {
		return malformed(data, offset, fmt.Sprintf("objects and lists must nest at most %d deep", MaxDepth))
	}
	if json.Valid(data) {
		return nil
	}
	var whole json.RawMessage
	err := json.Unmarshal(data, &whole)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// Offset counts the bytes read, the offending one included; at the end there is none.
		offset := int(syntax.Offset)
		if offset < len(data) || !strings.HasPrefix(syntax.Error(), "unexpected end") {
			offset--
		}
		return malformed(data, max(offset, 0), syntax.Error())
	}
	return apierr.MalformedJSON("the body is not valid JSON")
}

func malformed(data []byte, offset int, what string) error {
	before := data[:min(offset, len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1) + 1
	return apierr.MalformedJSON("the body is not valid JSON: line %d, column %d (byte %d): %s", line, column, offset, what)
}

// tooDeepAt returns the offset at which MaxDepth is passed, -1 if nowhere. Brackets inside strings do not count.
func tooDeepAt(data []byte) int {
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return i
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return -1
}

// reader carries what is counted while one body is read.
type reader struct {
	unknown int
}

// message sets the fields of msg from object. path is where object stands, "" at the top.
func (r *reader) message(msg protoreflect.Message, object map[string]any, path string) ([]protoreflect.FieldDescriptor, error) {
	fields := fieldsOf(msg.Descriptor())
	var present []protoreflect.FieldDescriptor
	// Sorted, so that of two wrong fields it is always the same one that is reported.
	for _, name := range slices.Sorted(maps.Keys(object)) {
		value := object[name]
		field := fields[name]
		if field == nil {
			r.unknown++
			continue
		}
		if value == nil && !isJSONValue(field) {
			continue
		}
		if err := checkOneof(msg, field, join(path, name)); err != nil {
			return nil, err
		}
		if err := r.field(msg, field, value, join(path, name)); err != nil {
			return nil, err
		}
		if !slices.Contains(present, field) {
			present = append(present, field)
		}
	}
	slices.SortFunc(present, func(a, b protoreflect.FieldDescriptor) int { return int(a.Number() - b.Number()) })
	return present, nil
}

func checkOneof(msg protoreflect.Message, field protoreflect.FieldDescriptor, path string) error {
	oneof := field.ContainingOneof()
	if oneof == nil || oneof.IsSynthetic() {
		return nil
	}
	if set := msg.WhichOneof(oneof); set != nil && set != field {
		return apierr.InvalidArgument(path, "only one of %s and %s may be given", set.JSONName(), field.JSONName())
	}
	return nil
}

func (r *reader) field(msg protoreflect.Message, field protoreflect.FieldDescriptor, value any, path string) error {
	switch {
	case field.IsMap():
		return r.mapField(msg, field, value, path)
	case field.IsList():
		return r.listField(msg, field, value, path)
	}
	if isUnsetZero(field, value) {
		return nil
	}
	decoded, ok, err := r.value(field, value, path)
	if err != nil || !ok {
		return err
	}
	msg.Set(field, decoded)
	return nil
}

// isUnsetZero reports a number 0 for a field that could tell it from "not given": clients in Go send their
// whole structs, in which 0 means not given (contract, wire conventions).
func isUnsetZero(field protoreflect.FieldDescriptor, value any) bool {
	number, ok := value.(json.Number)
	if !ok || !field.HasPresence() || field.Kind() == protoreflect.BoolKind || field.Kind() == protoreflect.StringKind {
		return false
	}
	float, err := number.Float64()
	return err == nil && float == 0
}

func (r *reader) listField(msg protoreflect.Message, field protoreflect.FieldDescriptor, value any, path string) error {
	items, isList := value.([]any)
	if !isList {
		if text, isText := value.(string); isText && text == "" {
			return nil
		}
		items = []any{value}
	}
	list := msg.NewField(field).List()
	for i, item := range items {
		if item == nil && !isJSONValue(field) {
			continue
		}
		decoded, ok, err := r.item(field, item, path, i, isList)
		if err != nil {
			return err
		}
		if !ok && field.Message() == nil && field.Kind() == protoreflect.StringKind {
			decoded, ok = protoreflect.ValueOfString(""), true
		}
		if ok {
			list.Append(decoded)
		}
	}
	if list.Len() > 0 {
		msg.Set(field, protoreflect.ValueOfList(list))
	}
	return nil
}

// item decodes one value of a list. Of a scalar the path is written only when something is wrong with it: written for each, the
// paths of a long list would take more memory than its values.
func (r *reader) item(field protoreflect.FieldDescriptor, item any, path string, i int, isList bool) (protoreflect.Value, bool, error) {
	if field.Message() == nil {
		if decoded, ok, err := scalar(field, item, path); err == nil {
			return decoded, ok, nil
		}
	}
	if isList {
		path = fmt.Sprintf("%s[%d]", path, i)
	}
	return r.value(field, item, path)
}

func (r *reader) mapField(msg protoreflect.Message, field protoreflect.FieldDescriptor, value any, path string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return notObject(path, value)
	}
	entries := msg.NewField(field).Map()
	for _, name := range slices.Sorted(maps.Keys(object)) {
		item := object[name]
		at := path + "[" + apierr.Quote(name) + "]"
		key, ok, err := scalar(field.MapKey(), name, at)
		if err != nil {
			return err
		}
		if !ok {
			key = field.MapKey().Default()
		}
		if item == nil && !isJSONValue(field.MapValue()) {
			continue
		}
		decoded, ok, err := r.value(field.MapValue(), item, at)
		if err != nil {
			return err
		}
		if !ok {
			decoded = entries.NewValue()
		}
		entries.Set(key.MapKey(), decoded)
	}
	if entries.Len() > 0 {
		msg.Set(field, protoreflect.ValueOfMap(entries))
	}
	return nil
}

// value decodes one value of the field's element type; false means "not given".
func (r *reader) value(field protoreflect.FieldDescriptor, value any, path string) (protoreflect.Value, bool, error) {
	if field.Message() == nil {
		return scalar(field, value, path)
	}
	if decode := wellKnown[field.Message().FullName()]; decode != nil {
		return decode(field, value, path)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return protoreflect.Value{}, false, notObject(path, value)
	}
	msg := newMessage(field)
	_, err := r.message(msg, object, path)
	return protoreflect.ValueOfMessage(msg), err == nil, err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
