package apierr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	optionsv1 "github.com/palisade/palisade/gen/palisade/options/v1"
)

// maxEcho is how many bytes of a caller's value an error text repeats at most.
const maxEcho = 100

// describe says which rule the field violates, what was got and what is allowed.
func describe(violation *protovalidate.Violation, field string) string {
	if field == "" {
		return violation.Proto.GetMessage() // a message-level rule names its fields itself
	}
	if violation.RuleDescriptor == nil {
		return withGot(field+": "+violation.Proto.GetMessage(), violation, ", ")
	}
	rule := violation.RuleDescriptor
	switch rule.Name() {
	case "required":
		return field + " is required"
	case "gte", "gt", "lte", "lt":
		return withGot(field+" must be "+bounds(rulesOf(violation)), violation, ", ")
	case "in":
		if enumOf(violation.FieldDescriptor) != nil {
			return withGotWord(field, violation)
		}
		return withGot(field+" must be one of "+words(violation.RuleValue), violation, "; ")
	case "not_in":
		if value := violation.FieldValue; value.IsValid() && value.Interface() == protoreflect.EnumNumber(0) {
			return field + " is required: one of " + enumWords(violation.FieldDescriptor) // the zero value of an enum means "not given"
		}
		if enumOf(violation.FieldDescriptor) != nil {
			return withGotWord(field, violation)
		}
		return withGot(field+" must not be one of "+words(violation.RuleValue), violation, "; ")
	case "const":
		return withGot(fmt.Sprintf("%s must be %s", field, show(violation.RuleValue.Interface())), violation, ", ")
	case "defined_only":
		return withGotWord(field, violation)
	case "finite":
		return withGot(field+" must be a finite number", violation, ", ")
	case "pattern":
		return withGot(field+" must match "+violation.RuleValue.String(), violation, ", ")
	}
	if text := describeLength(violation, field, string(rule.Name())); text != "" {
		return text
	}
	return withGot(field+": "+violation.Proto.GetMessage(), violation, ", ")
}

// describeLength describes rules about length and number. It names the length instead of the value.
func describeLength(violation *protovalidate.Violation, field, rule string) string {
	if !violation.RuleValue.IsValid() {
		return ""
	}
	limit, ok := violation.RuleValue.Interface().(uint64)
	if !ok {
		return ""
	}
	unit, got := measure(violation.FieldValue, rule)
	if unit == "" {
		return ""
	}
	switch {
	case strings.HasPrefix(rule, "max_") && limit == 0:
		return field + " is not supported here: leave it out"
	case strings.HasPrefix(rule, "max_"):
		return fmt.Sprintf("%s must have at most %d %s, got %d", field, limit, unit, got)
	case got == 0 && limit == 1:
		return field + " must not be empty"
	case strings.HasPrefix(rule, "min_"):
		return fmt.Sprintf("%s must have at least %d %s, got %d", field, limit, unit, got)
	}
	return fmt.Sprintf("%s must have exactly %d %s, got %d", field, limit, unit, got)
}

// measure returns the unit of the rule and the counted number. The unit is "" when the rule counts nothing.
func measure(value protoreflect.Value, rule string) (string, int) {
	if !value.IsValid() {
		return "", 0
	}
	switch v := value.Interface().(type) {
	case string:
		if strings.HasSuffix(rule, "_bytes") {
			return "bytes", len(v)
		}
		if strings.HasSuffix(rule, "len") {
			return "characters", utf8.RuneCountInString(v)
		}
	case []byte:
		if strings.HasSuffix(rule, "len") {
			return "bytes", len(v)
		}
	case protoreflect.List:
		return "items", v.Len()
	case protoreflect.Map:
		return "entries", v.Len()
	}
	return "", 0
}

// bounds formats both bounds of the rules, because a caller wants the range, not only the violated bound.
func bounds(rules protoreflect.Message) string {
	if rules == nil {
		return "within its bounds"
	}
	bound := func(name protoreflect.Name) (string, bool) {
		fd := rules.Descriptor().Fields().ByName(name)
		if fd == nil || !rules.Has(fd) {
			return "", false
		}
		return show(rules.Get(fd).Interface()), true
	}
	gte, hasGTE := bound("gte")
	lte, hasLTE := bound("lte")
	if hasGTE && hasLTE {
		return "between " + gte + " and " + lte
	}
	parts := make([]string, 0, 2)
	for _, half := range []struct {
		name protoreflect.Name
		word string
	}{{"gte", "at least "}, {"gt", "greater than "}, {"lte", "at most "}, {"lt", "less than "}} {
		if value, ok := bound(half.name); ok {
			parts = append(parts, half.word+value)
		}
	}
	return strings.Join(parts, " and ")
}

func words(list protoreflect.Value) string {
	if !list.IsValid() {
		return "the values of the contract"
	}
	items, ok := list.Interface().(protoreflect.List)
	if !ok {
		return show(list.Interface())
	}
	texts := make([]string, 0, items.Len())
	for i := range items.Len() {
		if text := fmt.Sprint(items.Get(i).Interface()); text != "" { // an empty word means "not given"
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}

// enumOf is the enum of a field, of the items of a list, or of the values of a map; nil for other fields.
func enumOf(field protoreflect.FieldDescriptor) protoreflect.EnumDescriptor {
	if field == nil {
		return nil
	}
	if field.IsMap() {
		field = field.MapValue()
	}
	return field.Enum()
}

func enumWords(field protoreflect.FieldDescriptor) string {
	if enumOf(field) == nil {
		return "the values of the contract"
	}
	return FieldWords(field)
}

// FieldWords lists the values that callers may give for an enum field: see [EnumWords]. The rules of the field limit
// them.
func FieldWords(field protoreflect.FieldDescriptor) string {
	return allowed(enumOf(field), enumRules(field))
}

// EnumWords lists the values that callers may give for an enum: all except the zero value, which means "not given".
func EnumWords(enum protoreflect.EnumDescriptor) string { return allowed(enum, nil) }

func allowed(enum protoreflect.EnumDescriptor, rules *validate.EnumRules) string {
	values := enum.Values()
	texts := make([]string, 0, values.Len())
	for i := range values.Len() {
		value, number := values.Get(i), int32(values.Get(i).Number())
		if number != 0 && !slices.Contains(rules.GetNotIn(), number) && (len(rules.GetIn()) == 0 || slices.Contains(rules.GetIn(), number)) {
			texts = append(texts, string(value.Name()))
		}
	}
	return strings.Join(texts, ", ")
}

// enumRules are the rules of an enum field, or of the items of a list; nil without any.
func enumRules(field protoreflect.FieldDescriptor) *validate.EnumRules {
	rules, err := protovalidate.ResolveFieldRules(field)
	if err != nil {
		return nil
	}
	if field.IsList() {
		rules = rules.GetRepeated().GetItems()
	}
	return rules.GetEnum()
}

// withGotWord names the allowed words of an enum, and the word that was got; its number if it is none.
func withGotWord(field string, violation *protovalidate.Violation) string {
	text := field + " must be one of " + enumWords(violation.FieldDescriptor)
	number, ok := violation.FieldValue.Interface().(protoreflect.EnumNumber)
	if enum := enumOf(violation.FieldDescriptor); ok && enum != nil {
		if value := enum.Values().ByNumber(number); value != nil {
			return text + "; got " + string(value.Name())
		}
	}
	return withGot(text, violation, "; ")
}

// withGot adds what was got, unless the field holds a credential or the value is meaningless by itself.
func withGot(text string, violation *protovalidate.Violation, separator string) string {
	if violation.FieldDescriptor != nil && IsSecret(violation.FieldDescriptor) {
		return text
	}
	if !violation.FieldValue.IsValid() {
		return text
	}
	switch value := violation.FieldValue.Interface().(type) {
	case protoreflect.List, protoreflect.Map, []byte:
		return text
	case protoreflect.Message:
		if _, ok := value.Interface().(*timestamppb.Timestamp); !ok {
			return text
		}
	}
	return text + separator + "got " + show(violation.FieldValue.Interface())
}

// IsSecret reports a field that holds a credential. Texts must not contain its value.
func IsSecret(field protoreflect.FieldDescriptor) bool {
	secret, _ := proto.GetExtension(field.Options(), optionsv1.E_Secret).(bool)
	return secret
}

func show(value any) string {
	switch v := value.(type) {
	case string:
		return quote(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	case protoreflect.Message:
		if at, ok := v.Interface().(*timestamppb.Timestamp); ok {
			return at.AsTime().Format(time.RFC3339Nano)
		}
	}
	return fmt.Sprint(value)
}

// quote formats a caller's text on one line and truncates it if it is long.
func quote(text string) string { return strconv.Quote(clip(text)) }

func clip(text string) string {
	if len(text) <= maxEcho {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(text[:maxEcho], "") + "…"
}

// Quote formats a caller's value for an error text: on one line, escaped, truncated if it is long.
func Quote(text string) string { return quote(text) }
