package apierr

import (
	"fmt"
	"slices"
	"strings"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"buf.build/go/protovalidate"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
)

// maxViolations is how many violations one error lists: a list of 1,000 invalid words does not need 1,000 texts.
const maxViolations = 10

// Validation turns the violations of one request into an error. Its text names each field by its JSON name, what was
// got and what is allowed. root is the descriptor of the request. Without it, the messages above the field have their
// proto names.
func Validation(invalid *protovalidate.ValidationError, root protoreflect.MessageDescriptor) error {
	reason := errorsv1.Reason_REASON_INVALID_ARGUMENT
	texts := make([]string, 0, 1)
	bad := &errdetails.BadRequest{}
	for i, violation := range invalid.Violations {
		if i == maxViolations {
			texts = append(texts, fmt.Sprintf("and %d more", len(invalid.Violations)-maxViolations))
			break
		}
		field := jsonPath(violation, root)
		text := describe(violation, field)
		texts = append(texts, text)
		bad.FieldViolations = append(bad.FieldViolations, fieldViolation(field, text))
		if i == 0 && isPageSize(violation) {
			reason = errorsv1.Reason_REASON_PAGE_SIZE_OUT_OF_RANGE
		}
	}
	if len(texts) == 0 {
		texts = append(texts, "the request is not valid")
	}
	return New(codes.InvalidArgument, reason, strings.Join(texts, "; "), bad).WithCause(invalid)
}

// isPageSize reports the fields that the contract's section on paging limits.
func isPageSize(violation *protovalidate.Violation) bool {
	if violation.FieldDescriptor == nil || violation.RuleDescriptor == nil {
		return false
	}
	name := violation.FieldDescriptor.Name()
	rule := string(violation.RuleDescriptor.Name())
	return (name == "page_size" || name == "limit") && slices.Contains([]string{"gte", "gt", "lte", "lt"}, rule)
}

// jsonPath is the path of the violation in the form of clients: target.project, severities[2]; "" for a rule about the
// whole request.
func jsonPath(violation *protovalidate.Violation, root protoreflect.MessageDescriptor) string {
	var b strings.Builder
	message := root
	elements := violation.Proto.GetField().GetElements()
	for i, element := range elements {
		if i > 0 {
			b.WriteByte('.')
		}
		name := element.GetFieldName()
		var field protoreflect.FieldDescriptor
		if message != nil {
			field = message.Fields().ByNumber(protoreflect.FieldNumber(element.GetFieldNumber()))
		}
		if field == nil && i == len(elements)-1 {
			field = violation.FieldDescriptor
		}
		message = nil
		if field != nil {
			name = field.JSONName()
			message = field.Message()
			if field.IsMap() {
				message = field.MapValue().Message()
			}
		}
		b.WriteString(name)
		writeSubscript(&b, element)
	}
	return b.String()
}

func writeSubscript(b *strings.Builder, element *validate.FieldPathElement) {
	switch key := element.GetSubscript().(type) {
	case *validate.FieldPathElement_Index:
		fmt.Fprintf(b, "[%d]", key.Index)
	case *validate.FieldPathElement_BoolKey:
		fmt.Fprintf(b, "[%t]", key.BoolKey)
	case *validate.FieldPathElement_IntKey:
		fmt.Fprintf(b, "[%d]", key.IntKey)
	case *validate.FieldPathElement_UintKey:
		fmt.Fprintf(b, "[%d]", key.UintKey)
	case *validate.FieldPathElement_StringKey:
		fmt.Fprintf(b, "[%s]", quote(key.StringKey))
	}
}

// rulesOf finds the violated rules: the rules of the field, of the items of the list, or of the keys or values of the
// map, by the rule's path. The result is invalid when there are none.
func rulesOf(violation *protovalidate.Violation) protoreflect.Message {
	if violation.FieldDescriptor == nil {
		return nil
	}
	rules, err := protovalidate.ResolveFieldRules(violation.FieldDescriptor)
	if err != nil || rules == nil {
		return nil
	}
	elements := violation.Proto.GetRule().GetElements()
	if len(elements) > 2 {
		switch elements[1].GetFieldName() {
		case "items":
			rules = rules.GetRepeated().GetItems()
		case "keys":
			rules = rules.GetMap().GetKeys()
		case "values":
			rules = rules.GetMap().GetValues()
		}
	}
	reflected := rules.ProtoReflect()
	typed := reflected.WhichOneof(reflected.Descriptor().Oneofs().ByName("type"))
	if typed == nil {
		return nil
	}
	return reflected.Get(typed).Message()
}
