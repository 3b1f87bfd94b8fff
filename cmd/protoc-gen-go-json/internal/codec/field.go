package codec

import (
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/annotations"
)

// field writes the statements that append one member.
func (g *generator) field(f formed) {
	switch {
	case f.form.Raw:
		g.rawMember(f)
	case f.Desc.IsMap():
		g.conditional(f, "len(x."+f.GoName+") > 0", func() { g.mapMember(f) })
	case f.Desc.IsList():
		g.conditional(f, "len(x."+f.GoName+") > 0", func() { g.listMember(f) })
	case f.Oneof != nil && !f.Oneof.Desc.IsSynthetic():
		g.oneofMember(f)
	case f.Desc.HasPresence():
		g.presenceMember(f)
	default:
		value := "x." + f.GoName
		g.conditional(f, filledTest(f.Desc, value), func() { g.member(f, value) })
	}
}

// rawMember writes bytes that contain JSON text.
func (g *generator) rawMember(f formed) {
	g.P("if len(x.", f.GoName, ") > 0 {")
	g.P("b = append(b, ", key(f, ""), "...)")
	g.P("b = append(b, x.", f.GoName, "...)")
	g.P("}")
}

// conditional writes a member without presence: always, or only if it is not empty.
func (g *generator) conditional(f formed, filled string, member func()) {
	// Enums with the zero value are left out; other values are written even if empty.
	omit := f.Enum != nil && !f.Desc.IsList()
	switch f.form.Unset {
	case annotations.UnsetNull:
		g.P("if ", filled, " {")
		member()
		g.P("} else {")
		g.P("b = append(b, ", key(f, "null"), "...)")
		g.P("}")
		return
	case annotations.UnsetOmit:
		omit = true
	}
	if !omit {
		member()
		return
	}
	g.P("if ", filled, " {")
	member()
	g.P("}")
}

// presenceMember writes a message, or a scalar with presence.
func (g *generator) presenceMember(f formed) {
	g.P("if x.", f.GoName, " != nil {")
	value := "x." + f.GoName
	if f.Desc.Message() == nil && f.Desc.Kind() != protoreflect.BytesKind {
		value = "*" + value
	}
	g.setMember(f, value)
	g.unset(f)
}

// oneofMember writes a member of a oneof if it is the one that is set.
func (g *generator) oneofMember(f formed) {
	g.P("if v, ok := x.", f.Oneof.GoName, ".(*", f.GoIdent, "); ok && v != nil {")
	g.setMember(f, "v."+f.GoName)
	g.unset(f)
}

// setMember writes a field that is present. An enum that is set to zero counts as not set: only lists and maps show
// zero values of enums.
func (g *generator) setMember(f formed, value string) {
	if f.Desc.Kind() == protoreflect.EnumKind && !isNullValue(f.Desc) {
		g.P("if ", filledTest(f.Desc, value), " {")
		g.member(f, value)
		if f.form.Unset == annotations.UnsetNull {
			g.P("} else {")
			g.P("b = append(b, ", key(f, "null"), "...)")
		}
		g.P("}")
		return
	}
	g.member(f, value)
}

// unset closes the if of a field with presence, with an else for the option.
func (g *generator) unset(f formed) {
	switch f.form.Unset {
	case annotations.UnsetNull:
		g.P("} else {")
		g.P("b = append(b, ", key(f, "null"), "...)")
	case annotations.UnsetObject:
		g.P("} else {")
		g.P("b = append(b, ", key(f, "{}"), "...)")
	}
	g.P("}")
}

// member writes the name and the value.
func (g *generator) member(f formed, value string) {
	g.P("b = append(b, ", key(f, ""), "...)")
	a := g.appender(f.Desc, f.Enum, f.Message, f.form.Number)
	g.P("b = ", a.call("b", value))
}

func (g *generator) listMember(f formed) {
	g.P("b = append(b, ", key(f, ""), "...)")
	a := g.appender(f.Desc, f.Enum, f.Message, f.form.Number)
	g.P("b = ", appendPackage.Ident("List"), "(b, x.", f.GoName, ", ", a.function(), ")")
}

func (g *generator) mapMember(f formed) {
	var function string
	switch f.Desc.MapKey().Kind() {
	case protoreflect.StringKind:
		function = "StringMap"
	case protoreflect.BoolKind:
		function = "BoolMap"
	default:
		function = "IntMap"
	}
	value := valueField(f)
	a := g.appender(value.Desc, value.Enum, value.Message, f.form.Number)
	g.P("b = append(b, ", key(f, ""), "...)")
	g.P("b = ", appendPackage.Ident(function), "(b, x.", f.GoName, ", ", a.function(), ")")
}

// valueField returns the field that describes the values of a map.
func valueField(f formed) *protogen.Field {
	return f.Message.Fields[1]
}

// filledTest returns the Go condition that a scalar is not the zero value.
func filledTest(fd protoreflect.FieldDescriptor, value string) string {
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return value
	case protoreflect.StringKind:
		return value + ` != ""`
	case protoreflect.BytesKind:
		return "len(" + value + ") > 0"
	default:
		return value + " != 0"
	}
}
