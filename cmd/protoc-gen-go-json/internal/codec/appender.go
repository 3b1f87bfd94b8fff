package codec

import (
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// wellKnownAppenders maps each well-known type to its function in jsonappend.
var wellKnownAppenders = map[protoreflect.FullName]string{
	"google.protobuf.Any":         "Any",
	"google.protobuf.BoolValue":   "BoolValue",
	"google.protobuf.BytesValue":  "BytesValue",
	"google.protobuf.DoubleValue": "DoubleValue",
	"google.protobuf.Duration":    "Duration",
	"google.protobuf.Empty":       "Empty",
	"google.protobuf.FieldMask":   "FieldMask",
	"google.protobuf.FloatValue":  "FloatValue",
	"google.protobuf.Int32Value":  "Int32Value",
	"google.protobuf.Int64Value":  "QuotedInt64Value",
	"google.protobuf.ListValue":   "ListValue",
	"google.protobuf.StringValue": "StringValue",
	"google.protobuf.Struct":      "Struct",
	"google.protobuf.Timestamp":   "Timestamp",
	"google.protobuf.UInt32Value": "UInt32Value",
	"google.protobuf.UInt64Value": "QuotedUInt64Value",
	"google.protobuf.Value":       "Value",
}

// scalarAppenders maps each scalar kind to its function in jsonappend.
var scalarAppenders = map[protoreflect.Kind]string{
	protoreflect.BoolKind:     "Bool",
	protoreflect.StringKind:   "String",
	protoreflect.BytesKind:    "Bytes",
	protoreflect.Int32Kind:    "Int32",
	protoreflect.Sint32Kind:   "Int32",
	protoreflect.Sfixed32Kind: "Int32",
	protoreflect.Uint32Kind:   "Uint32",
	protoreflect.Fixed32Kind:  "Uint32",
	protoreflect.Int64Kind:    "QuotedInt64",
	protoreflect.Sint64Kind:   "QuotedInt64",
	protoreflect.Sfixed64Kind: "QuotedInt64",
	protoreflect.Uint64Kind:   "QuotedUint64",
	protoreflect.Fixed64Kind:  "QuotedUint64",
	protoreflect.FloatKind:    "Float",
	protoreflect.DoubleKind:   "Double",
}

// numberForms maps a function that quotes 64-bit integers to its unquoted variant.
var numberForms = map[string]string{
	"QuotedInt64":       "Int64",
	"QuotedUint64":      "Uint64",
	"QuotedInt64Value":  "Int64Value",
	"QuotedUInt64Value": "UInt64Value",
}

// appender appends one value: a function func([]byte, T) []byte, the AppendJSON method of a message, or jsonappend.Enum
// with the names of an enum.
type appender struct {
	ident   string        // the function, qualified; empty for a method
	goType  func() string // the qualified type of the value; only called when it is written, because it adds an import; for methods and enums
	nameMap string        // the map of enum names, qualified; only for enums
}

// appender chooses the appender for a field, list item or map value.
func (g *generator) appender(
	fd protoreflect.FieldDescriptor, enum *protogen.Enum, message *protogen.Message, number bool,
) appender {
	switch {
	case isNullValue(fd):
		return appender{ident: g.QualifiedGoIdent(appendPackage.Ident("NullValue"))}
	case enum != nil:
		names := enum.GoIdent
		names.GoName += "_name"
		return appender{
			ident:   g.QualifiedGoIdent(appendPackage.Ident("Enum")),
			goType:  func() string { return g.QualifiedGoIdent(enum.GoIdent) },
			nameMap: g.QualifiedGoIdent(names),
		}
	case message != nil:
		return g.messageAppender(message, number)
	default:
		return g.named(scalarAppenders[fd.Kind()], number)
	}
}

func (g *generator) messageAppender(message *protogen.Message, number bool) appender {
	name := message.Desc.FullName()
	if function, wellKnown := wellKnownAppenders[name]; wellKnown {
		return g.named(function, number)
	}
	if rootPackage(string(name)) == g.root {
		return appender{goType: func() string { return "*" + g.QualifiedGoIdent(message.GoIdent) }}
	}
	return g.named("Foreign", false)
}

func (g *generator) named(function string, number bool) appender {
	if number {
		function = numberForms[function]
	}
	return appender{ident: g.QualifiedGoIdent(appendPackage.Ident(function))}
}

// call returns the Go expression that appends value to b.
func (a appender) call(b, value string) string {
	switch {
	case a.ident == "":
		return value + ".AppendJSON(" + b + ")"
	case a.nameMap != "":
		return a.ident + "(" + b + ", " + value + ", " + a.nameMap + ")"
	default:
		return a.ident + "(" + b + ", " + value + ")"
	}
}

// function returns a Go expression of type func([]byte, T) []byte.
func (a appender) function() string {
	if a.goType == nil {
		return a.ident
	}
	return "func(b []byte, v " + a.goType() + ") []byte { return " + a.call("b", "v") + " }"
}

// isNullValue reports whether a field is google.protobuf.NullValue. Its zero value is a JSON value: null.
func isNullValue(fd protoreflect.FieldDescriptor) bool {
	return fd.Enum() != nil && fd.Enum().FullName() == "google.protobuf.NullValue"
}
