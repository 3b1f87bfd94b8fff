package lenient

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// Query reads a raw query string for a message and returns it in the form that grpc-gateway's query parser always
// accepts: proto names, one value for singular fields, and numbers, booleans, enums and times in its own format. It
// drops unknown names, empty pairs and empty values, and the top-level fields for which skip reports true (the path
// sets them). Errors are apierr errors that name the parameter in the client's spelling.
//
// A list is repeated (a=1&a=2), comma-separated (a=1,2) or indexed (a[0]=1&a[]=2). Indexed values and values of lists
// of names (palisade.options.v1.names) are not split at commas. A singular parameter with two different values is
// refused.
func Query(raw string, message protoreflect.MessageDescriptor, skip func(protoreflect.FieldDescriptor) bool) (url.Values, error) {
	values := url.Values{}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(rawName)
		if err != nil || rawValue == "" {
			continue // an unreadable name is not one of ours
		}
		bare, indexed := cutIndex(name)
		target := lookUp(message, bare)
		if target == nil || skip != nil && skip(target.top) {
			continue
		}
		value, err := url.QueryUnescape(rawValue)
		if err != nil {
			return nil, apierr.InvalidArgument(bare, "%s must be percent-encoded, got %s", bare, apierr.Quote(rawValue))
		}
		if err := target.add(values, value, indexed, bare); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Unknown returns the first name in a raw query string that Query drops because it is no parameter of the message.
func Unknown(raw string, message protoreflect.MessageDescriptor, skip func(protoreflect.FieldDescriptor) bool) (string, bool) {
	for pair := range strings.SplitSeq(raw, "&") {
		rawName, _, _ := strings.Cut(pair, "=")
		if rawName == "" {
			continue
		}
		name, err := url.QueryUnescape(rawName)
		if err != nil {
			return rawName, true
		}
		bare, _ := cutIndex(name)
		if target := lookUp(message, bare); target == nil || skip != nil && skip(target.top) {
			return name, true
		}
	}
	return "", false
}

// cutIndex removes the [0] or [] of an indexed name.
func cutIndex(name string) (string, bool) {
	bare, rest, found := strings.Cut(name, "[")
	if !found || !strings.HasSuffix(rest, "]") {
		return name, false
	}
	index := strings.TrimSuffix(rest, "]")
	return bare, strings.Trim(index, "0123456789") == ""
}

// parameter is a field that a query may set, reached through singular messages.
type parameter struct {
	top, field protoreflect.FieldDescriptor
	path       string // proto names joined by dots
}

// lookUp finds the field of a parameter by dotted names, or nil when a query cannot set it.
func lookUp(message protoreflect.MessageDescriptor, name string) *parameter {
	found := &parameter{}
	for part := range strings.SplitSeq(name, ".") {
		if message == nil {
			return nil
		}
		field := fieldsOf(message)[part]
		if field == nil {
			return nil
		}
		if found.top == nil {
			found.top = field
		}
		found.field = field
		found.path = join(found.path, string(field.Name()))
		message = nil
		if field.Cardinality() != protoreflect.Repeated && field.Message() != nil {
			message = field.Message()
		}
	}
	if found.field.IsMap() {
		return nil
	}
	if inner := found.field.Message(); inner != nil && !inQuery(inner) {
		return nil
	}
	return found
}

// inQuery reports the messages that are written as one word.
func inQuery(message protoreflect.MessageDescriptor) bool {
	switch message.FullName() {
	case "google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue", "google.protobuf.Any":
		return false
	}
	return wellKnown[message.FullName()] != nil
}

func (p *parameter) add(values url.Values, value string, indexed bool, name string) error {
	if !p.field.IsList() {
		word, ok, err := p.canonical(value, name)
		if err != nil || !ok {
			return err
		}
		if before := values[p.path]; len(before) > 0 && before[0] != word {
			return apierr.InvalidArgument(name, "%s takes one value, got %s and %s", name,
				apierr.Quote(before[0]), apierr.Quote(word))
		}
		values.Set(p.path, word)
		return nil
	}
	items := []string{value}
	if !indexed && !isNames(p.field) {
		items = strings.Split(value, ",")
	}
	for _, item := range items {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		word, ok, err := p.canonical(item, name)
		if err != nil {
			return err
		}
		if ok {
			values.Add(p.path, word)
		}
	}
	return nil
}

func isNames(field protoreflect.FieldDescriptor) bool {
	return proto.GetExtension(field.Options(), optionsv1.E_Names).(bool)
}

// canonical validates a value and formats it for grpc-gateway's parser. false means "not given".
func (p *parameter) canonical(value, name string) (string, bool, error) {
	if p.field.Message() == nil {
		decoded, ok, err := scalar(p.field, value, name)
		if err != nil || !ok {
			return "", false, err
		}
		return scalarWord(decoded), true, nil
	}
	decoded, ok, err := wellKnown[p.field.Message().FullName()](p.field, value, name)
	if err != nil || !ok {
		return "", false, err
	}
	switch msg := decoded.Message().Interface().(type) {
	case *timestamppb.Timestamp:
		return msg.AsTime().Format(time.RFC3339Nano), true, nil
	case *durationpb.Duration:
		return msg.AsDuration().String(), true, nil
	case *fieldmaskpb.FieldMask:
		return strings.Join(msg.GetPaths(), ","), true, nil
	}
	inner := p.field.Message().Fields().ByNumber(1)
	return scalarWord(decoded.Message().Get(inner)), true, nil
}

func scalarWord(value protoreflect.Value) string {
	switch v := value.Interface().(type) {
	case protoreflect.EnumNumber:
		return strconv.Itoa(int(v))
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	}
	return value.String()
}

// Fields returns a skip function for Query that skips the named top-level fields.
func Fields(names ...protoreflect.Name) func(protoreflect.FieldDescriptor) bool {
	return func(field protoreflect.FieldDescriptor) bool { return slices.Contains(names, field.Name()) }
}
