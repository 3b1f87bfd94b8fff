// Package annotations reads the options of proto/palisade/options/v1/options.proto from descriptors, for our protoc
// plugins.
//
// It reads the descriptors of the request instead of Go types generated from options.proto: a plugin that imports
// generated code could not be built to repair generated code.
package annotations

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// Full names of our options.
const (
	optionRule      = "palisade.options.v1.rule"
	optionJSON      = "palisade.options.v1.json"
	optionSecret    = "palisade.options.v1.secret"
	optionHeader    = "palisade.options.v1.header"
	optionVariantBy = "palisade.options.v1.variant_by"
)

// Unset is what to write for a field that is not set; the words are the proto enum's.
type Unset string

// Values of Unset.
const (
	UnsetDefault Unset = "UNSET_UNSPECIFIED"
	UnsetOmit    Unset = "UNSET_OMIT"
	UnsetNull    Unset = "UNSET_NULL"
	UnsetObject  Unset = "UNSET_OBJECT"
)

// Form is the JsonForm of a field.
type Form struct {
	Number   bool
	Unset    Unset
	Variants []string
	// NumberVariants are the variants in which a 64-bit integer is a JSON number.
	NumberVariants []string
	// VariantsIfSet have the field only if it is set.
	VariantsIfSet []string
	// Raw marks bytes that contain JSON text, which is written unchanged.
	Raw bool
}

// Rule is the MethodRule of an RPC, enums by name.
type Rule struct {
	Permission  string
	Schemes     []string
	Maturity    string
	SuccessCode int
	// UploadPath is the path of the POST with the raw body of a client-streaming RPC; empty for other RPCs.
	UploadPath string
	// EventsPath is the path of the GET that a server-streaming RPC answers with server-sent events; empty for others.
	EventsPath string
	// Scanner marks RPCs of the scanner protocol. Their errors have a different body.
	Scanner bool
}

// Reader finds our options in descriptors.
type Reader struct {
	types *dynamicpb.Types
}

// NewReader returns a Reader for the files of one plugin request. It fails if the set is incomplete. Files that do not
// import options.proto are allowed: they have none of our options.
func NewReader(files []*descriptorpb.FileDescriptorProto) (*Reader, error) {
	registry, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: files})
	if err != nil {
		return nil, fmt.Errorf("the descriptors of the request are not complete: %w", err)
	}
	return &Reader{types: dynamicpb.NewTypes(registry)}, nil
}

// Form returns the JSON form of a field; without the option, the form with UnsetDefault.
func (r *Reader) Form(field protoreflect.FieldDescriptor) (Form, error) {
	value, err := r.option(field, optionJSON)
	if err != nil || !value.IsValid() {
		return Form{Unset: UnsetDefault}, err
	}
	m := value.Message()
	return Form{
		Number:   m.Get(named(m, "number")).Bool(),
		Unset:    Unset(enumName(m, "unset")),
		Variants: stringList(m.Get(named(m, "variants")).List()),

		NumberVariants: stringList(m.Get(named(m, "number_variants")).List()),
		VariantsIfSet:  stringList(m.Get(named(m, "variants_if_set")).List()),
		Raw:            m.Get(named(m, "raw")).Bool(),
	}, nil
}

// Secret reports whether a field holds a credential.
func (r *Reader) Secret(field protoreflect.FieldDescriptor) (bool, error) {
	value, err := r.option(field, optionSecret)
	if err != nil || !value.IsValid() {
		return false, err
	}
	return value.Bool(), nil
}

// Header returns the request header that fills a field of an upload; empty for a query field.
func (r *Reader) Header(field protoreflect.FieldDescriptor) (string, error) {
	value, err := r.option(field, optionHeader)
	if err != nil || !value.IsValid() {
		return "", err
	}
	return value.String(), nil
}

// VariantBy returns the field that holds the variant of a message, or nil if the message has no variants.
func (r *Reader) VariantBy(message protoreflect.MessageDescriptor) (protoreflect.FieldDescriptor, error) {
	value, err := r.option(message, optionVariantBy)
	if err != nil || !value.IsValid() || value.String() == "" {
		return nil, err
	}
	field := message.Fields().ByName(protoreflect.Name(value.String()))
	if field == nil || field.Kind() != protoreflect.StringKind || field.IsList() || field.HasPresence() {
		return nil, fmt.Errorf("%s: variant_by names %q, which must be a plain string field of the message",
			message.FullName(), value.String())
	}
	return field, nil
}

// Rule returns the access rule of an RPC, and false if it has none.
func (r *Reader) Rule(method protoreflect.MethodDescriptor) (Rule, bool, error) {
	value, err := r.option(method, optionRule)
	if err != nil || !value.IsValid() {
		return Rule{}, false, err
	}
	m := value.Message()
	rule := Rule{
		Permission:  enumName(m, "permission"),
		Maturity:    enumName(m, "maturity"),
		SuccessCode: int(m.Get(named(m, "success_code")).Int()),
		UploadPath:  m.Get(named(m, "upload_path")).String(),
		EventsPath:  m.Get(named(m, "events_path")).String(),
		Scanner:     m.Get(named(m, "scanner")).Bool(),
	}
	field := named(m, "schemes")
	schemes := m.Get(field).List()
	for i := range schemes.Len() {
		rule.Schemes = append(rule.Schemes, valueName(field, schemes.Get(i).Enum()))
	}
	return rule, true, nil
}

// option returns the value of one of our options; invalid if it is not set.
func (r *Reader) option(d protoreflect.Descriptor, name protoreflect.FullName) (protoreflect.Value, error) {
	extension, err := r.types.FindExtensionByName(name)
	if err != nil {
		return protoreflect.Value{}, nil //nolint:nilerr // None of the files imports our options.
	}
	encoded, err := proto.Marshal(d.Options())
	if err != nil {
		return protoreflect.Value{}, fmt.Errorf("%s: read the options: %w", d.FullName(), err)
	}
	options := d.Options().ProtoReflect().New()
	err = proto.UnmarshalOptions{Resolver: r.types}.Unmarshal(encoded, options.Interface())
	if err != nil {
		return protoreflect.Value{}, fmt.Errorf("%s: read the options: %w", d.FullName(), err)
	}
	field := extension.TypeDescriptor()
	if !options.Has(field) {
		return protoreflect.Value{}, nil
	}
	return options.Get(field), nil
}

func named(m protoreflect.Message, field protoreflect.Name) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(field)
}

func enumName(m protoreflect.Message, field protoreflect.Name) string {
	fd := named(m, field)
	return valueName(fd, m.Get(fd).Enum())
}

func valueName(field protoreflect.FieldDescriptor, number protoreflect.EnumNumber) string {
	value := field.Enum().Values().ByNumber(number)
	if value == nil {
		return fmt.Sprint(number)
	}
	return string(value.Name())
}

func stringList(list protoreflect.List) []string {
	var words []string
	for i := range list.Len() {
		words = append(words, list.Get(i).String())
	}
	return words
}
