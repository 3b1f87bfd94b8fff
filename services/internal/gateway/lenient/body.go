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
	"github.com/palisade/palisade/services/internal/bounds"
)

// MaxDepth is the maximum nesting depth of objects and lists in a body.
const MaxDepth = bounds.MaxDepth

// Decoded describes the body beyond the values in the message.
type Decoded struct {
	// Present are the top-level fields that the body has with a value other than null, ordered by field number.
	Present []protoreflect.FieldDescriptor
	// Unknown is the number of unknown field names, at any depth.
	Unknown int
}

// Body decodes a JSON body into msg, which should be empty. An empty body and null leave msg unchanged. Before
// decoding, Body calls spend with the memory that the decoded body will take, in bytes; spend may refuse it. A nil
// spend counts nothing. Errors are apierr errors: MALFORMED_JSON with the position, INVALID_ARGUMENT with the path of
// the field, and the error of spend.
func Body(data []byte, msg proto.Message, spend func(bytes int64) error) (Decoded, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) // some editors put a byte order mark first
	if len(data) == 0 {
		return Decoded{}, nil
	}
	if err := checkSyntax(data); err != nil {
		return Decoded{}, err
	}
	switch data[0] {
	case 'n':
		return Decoded{}, nil
	case '{':
		if spend == nil {
			spend = func(int64) error { return nil }
		}
		r := &reader{spend: spend}
		present, err := r.message(msg.ProtoReflect(), data, "")
		return Decoded{Present: present, Unknown: r.unknown}, err
	}
	return Decoded{}, apierr.InvalidArgument("body", "the body must be a JSON object, got %s", shown(word(data)))
}

// checkSyntax reports the position of a syntax error. It refuses bodies that nest too deep before recursive code reads
// them.
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
		// Offset counts the bytes read, including the offending one, which is missing at the end of the input.
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

// tooDeepAt returns the offset at which the depth exceeds MaxDepth, or -1. It ignores brackets inside strings.
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

// reader holds the counters for one body.
type reader struct {
	unknown int
	// strict says that a name that is no field is an error.
	strict bool
	spend  func(bytes int64) error
}

// member is a known field of an object.
type member struct {
	name  string
	field *bounds.Field
	value []byte
}

// known returns the members of an object that are fields of the message, sorted by name, so that the same body always
// reports the same error. The last value of a repeated name counts. path is the position of the object.
func (r *reader) known(message protoreflect.MessageDescriptor, object []byte, path string) ([]member, error) {
	fields, limits := fieldsOf(message), bounds.Of(message)
	var found []member
	var unknown []string
	for quoted, value := range members(object) {
		name := unquote(quoted)
		field := fields[name]
		if field == nil {
			if r.unknown++; r.strict {
				unknown = append(unknown, name)
			}
			continue
		}
		m := member{name, limits.Field(field.Number()), value}
		if i := slices.IndexFunc(found, func(other member) bool { return other.name == name }); i >= 0 {
			found[i] = m
		} else {
			found = append(found, m)
		}
	}
	if len(unknown) > 0 {
		at := join(path, slices.Min(unknown))
		return nil, apierr.InvalidArgument(at, "%s: there is no such field; there are %s", apierr.Quote(at), namesOf(message))
	}
	slices.SortFunc(found, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return found, nil
}

// namesOf lists the fields of a message for an error.
func namesOf(message protoreflect.MessageDescriptor) string {
	names := make([]string, message.Fields().Len())
	for i := range names {
		names[i] = message.Fields().Get(i).JSONName()
	}
	return strings.Join(names, ", ")
}

// message sets the fields of msg from object. path is the position of object, "" at the top.
func (r *reader) message(msg protoreflect.Message, object []byte, path string) ([]protoreflect.FieldDescriptor, error) {
	if err := r.spend(bounds.Of(msg.Descriptor()).Size); err != nil {
		return nil, err
	}
	defer func(before bool) { r.strict = before }(r.strict)
	r.strict = r.strict || isStrict(msg.Descriptor())
	all, err := r.known(msg.Descriptor(), object, path)
	if err != nil {
		return nil, err
	}
	var present []protoreflect.FieldDescriptor
	for _, m := range all {
		field := m.field.Descriptor
		if isNull(m.value) && !isJSONValue(field) {
			continue
		}
		at := join(path, m.name)
		if err := checkOneof(msg, field, at); err != nil {
			return nil, err
		}
		if err := r.field(msg, m, at); err != nil {
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

func (r *reader) field(msg protoreflect.Message, m member, path string) error {
	field := m.field.Descriptor
	switch {
	case field.IsMap():
		return r.mapField(msg, m, path)
	case field.IsList():
		return r.listField(msg, m, path)
	}
	if isUnsetZero(field, m.value) {
		return nil
	}
	decoded, ok, err := r.value(m.field, m.value, path)
	if err != nil || !ok {
		return err
	}
	msg.Set(field, decoded)
	return nil
}

// isUnsetZero reports a number 0 for a field with explicit presence. Go clients send whole structs, in which 0 means
// not given (contract, wire conventions).
func isUnsetZero(field protoreflect.FieldDescriptor, value []byte) bool {
	number, ok := word(value).(json.Number)
	if !ok || !field.HasPresence() || field.Kind() == protoreflect.BoolKind || field.Kind() == protoreflect.StringKind {
		return false
	}
	float, err := number.Float64()
	return err == nil && float == 0
}

func (r *reader) listField(msg protoreflect.Message, m member, path string) error {
	field, isList := m.field.Descriptor, m.value[0] == '['
	items := [][]byte{m.value} // a single value is a list of one
	if isList {
		n := count(m.value)
		if n > m.field.Items {
			return m.field.TooMany(path, n)
		}
		if err := r.spend(int64(n) * m.field.Cost()); err != nil {
			return err
		}
		items = slices.AppendSeq(make([][]byte, 0, n), elements(m.value))
	} else if string(m.value) == `""` {
		return nil
	}
	list := msg.NewField(field).List()
	for i, item := range items {
		if isNull(item) && !isJSONValue(field) {
			if isList && field.Message() != nil {
				at := fmt.Sprintf("%s[%d]", path, i)
				return apierr.InvalidArgument(at, "%s must not be null", at)
			}
			continue
		}
		decoded, ok, err := r.item(m.field, item, path, i, isList)
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

// item decodes one value of a list. It builds the path of a scalar only for an error, because the paths of a long list
// would take more memory than its values.
func (r *reader) item(field *bounds.Field, item []byte, path string, i int, isList bool) (protoreflect.Value, bool, error) {
	if field.Descriptor.Message() == nil {
		if decoded, ok, err := r.scalar(field, item, path); err == nil {
			return decoded, ok, nil
		}
	}
	if isList {
		path = fmt.Sprintf("%s[%d]", path, i)
	}
	return r.value(field, item, path)
}

func (r *reader) mapField(msg protoreflect.Message, m member, path string) error {
	field := m.field.Descriptor
	if m.value[0] != '{' {
		return notObject(path, word(m.value))
	}
	n := count(m.value)
	if n > m.field.Items {
		return m.field.TooMany(path, n)
	}
	if err := r.spend(int64(n)*m.field.Cost() + int64(len(m.value))); err != nil {
		return err
	}
	object := make(map[string][]byte, n)
	for name, value := range members(m.value) {
		object[unquote(name)] = value
	}
	entries := msg.NewField(field).Map()
	element := bounds.Of(field.Message()).Field(field.MapValue().Number())
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
		if isNull(item) && !isJSONValue(field.MapValue()) {
			continue
		}
		decoded, ok, err := r.value(element, item, at)
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

// value decodes one value of the field's element type. false means "not given".
func (r *reader) value(field *bounds.Field, value []byte, path string) (protoreflect.Value, bool, error) {
	message := field.Descriptor.Message()
	if message == nil {
		return r.scalar(field, value, path)
	}
	if decode := wellKnown[message.FullName()]; decode != nil {
		tree, err := r.tree(value, path, isFreeForm(message))
		if err != nil {
			return protoreflect.Value{}, false, err
		}
		return decode(field.Descriptor, tree, path)
	}
	if value[0] != '{' {
		return protoreflect.Value{}, false, notObject(path, word(value))
	}
	msg := newMessage(field.Descriptor)
	_, err := r.message(msg, value, path)
	return protoreflect.ValueOfMessage(msg), err == nil, err
}

// scalar decodes one value of a scalar type.
func (r *reader) scalar(field *bounds.Field, value []byte, path string) (protoreflect.Value, bool, error) {
	kind := field.Descriptor.Kind()
	if value[0] == '"' && (kind == protoreflect.StringKind || kind == protoreflect.BytesKind) {
		if err := r.spend(int64(len(value))); err != nil {
			return protoreflect.Value{}, false, err
		}
	}
	decoded := word(value)
	if text, ok := decoded.(string); ok && len(value) > longText {
		if err := field.CheckText([]byte(text), func() string { return path }); err != nil {
			return protoreflect.Value{}, false, err
		}
	}
	return scalar(field.Descriptor, decoded, path)
}

// longText is the length in bytes from which texts are checked against their limits here. The validator checks shorter
// ones.
const longText = 4 << 10

const (
	// maxFreeForm is the maximum number of values of free-form JSON in one field. freeFormCost is the memory in bytes
	// that each takes while it becomes a google.protobuf.Struct.
	maxFreeForm  = 100_000
	freeFormCost = 200
	// maxWord is the longest time, duration or list of field names, in bytes.
	maxWord = 64 << 10
)

// tree decodes a value of free-form JSON as encoding/json does.
func (r *reader) tree(value []byte, path string, freeForm bool) (any, error) {
	most := bounds.DefaultText
	if !freeForm {
		most = maxWord
	}
	if value[0] != '{' && value[0] != '[' {
		if len(value) > most {
			return nil, apierr.InvalidArgument(path, "%s must have at most %d bytes, got %d", path, most, len(value))
		}
		return word(value), r.spend(int64(len(value)))
	}
	n := values(value)
	if n > maxFreeForm {
		return nil, apierr.InvalidArgument(path, "%s must have at most %d values, got %d", path, maxFreeForm, n)
	}
	if err := r.spend(int64(n)*freeFormCost + 2*int64(len(value))); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var tree any
	err := decoder.Decode(&tree)
	return tree, err
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
