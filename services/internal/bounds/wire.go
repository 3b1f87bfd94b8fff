package bounds

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/services/internal/apierr"
)

// Wire checks an encoded message before it is decoded and returns the memory of the decoded message, in bytes. It
// allocates nothing itself. Unknown fields cost nothing: decode with DiscardUnknown. Errors: INVALID_ARGUMENT naming
// the field that exceeds its limit, or saying that the data is not a message of this type.
func Wire(data []byte, descriptor protoreflect.MessageDescriptor) (int64, error) {
	w := &wire{}
	err := w.message(data, descriptor, nil)
	return w.cost, err
}

// Scalars returns the part of an encoded message with its own numbers and texts, within their limits, without lists and
// messages. For invalid data it returns the part before the error.
func Scalars(data []byte, descriptor protoreflect.MessageDescriptor) []byte {
	m := Of(descriptor)
	var scalars []byte
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			break
		}
		if f := m.fields[number]; f != nil && f.Items == 0 && f.Descriptor.Message() == nil {
			content, _ := protowire.ConsumeBytes(data[n : n+size])
			if kind != protowire.BytesType || f.CheckText(content, func() string { return "" }) == nil {
				scalars = append(scalars, data[:n+size]...)
			}
		}
		data = data[n+size:]
	}
	return scalars
}

// wire walks an encoded message.
type wire struct {
	cost  int64
	depth int
}

// position is the position of a message in the request: in a field of another message.
type position struct {
	parent *position
	field  protoreflect.FieldDescriptor
	index  int // index in a list, else -1
}

// path is a field of the message at p in the form of clients: policies[3].rules.
func (p *position) path(field protoreflect.FieldDescriptor) string {
	names := []string{field.JSONName()}
	for ; p != nil; p = p.parent {
		name := p.field.JSONName()
		if p.index >= 0 {
			name = fmt.Sprintf("%s[%d]", name, p.index)
		}
		names = append([]string{name}, names...)
	}
	return strings.Join(names, ".")
}

// tally counts the elements of the lists and maps of one message.
type tally []struct {
	field *Field
	count int
}

// add counts n elements of a field and returns the number before.
func (t *tally) add(f *Field, n int) int {
	for i := range *t {
		if (*t)[i].field == f {
			before := (*t)[i].count
			(*t)[i].count += n
			return before
		}
	}
	*t = append(*t, struct {
		field *Field
		count int
	}{f, n})
	return 0
}

func (w *wire) message(data []byte, descriptor protoreflect.MessageDescriptor, at *position) error {
	if w.depth++; w.depth > MaxDepth {
		return apierr.InvalidArgument("request", "messages must nest at most %d deep", MaxDepth)
	}
	defer func() { w.depth-- }()
	m := Of(descriptor)
	w.cost += m.Size
	var counts tally
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return errNotOurs()
		}
		size := protowire.ConsumeFieldValue(number, kind, data[n:])
		if size < 0 {
			return errNotOurs()
		}
		if f := m.fields[number]; f != nil {
			if err := w.field(f, kind, data[n:n+size], &counts, at); err != nil {
				return err
			}
		}
		data = data[n+size:]
	}
	for _, c := range counts {
		if c.field.Items == 0 {
			continue // a singular message
		}
		if c.count > c.field.Items {
			return c.field.TooMany(at.path(c.field.Descriptor), c.count)
		}
	}
	return nil
}

// field checks one occurrence of a field. Elements above the limit of a list are counted for the error, but not
// checked.
func (w *wire) field(f *Field, kind protowire.Type, value []byte, counts *tally, at *position) error {
	index := -1
	if f.Items > 0 {
		n := elements(f.Descriptor, kind, value)
		index = counts.add(f, n)
		if index+n > f.Items {
			return nil
		}
		w.cost += int64(n) * f.Cost()
	}
	if kind != protowire.BytesType {
		return nil
	}
	content, _ := protowire.ConsumeBytes(value)
	switch {
	case f.Descriptor.Message() != nil:
		// Protobuf would merge repeated occurrences, including their lists. Encoders write one.
		if f.Items == 0 && counts.add(f, 1) > 0 {
			name := at.path(f.Descriptor)
			return apierr.InvalidArgument(name, "%s must be given once", name)
		}
		if f.Descriptor.IsMap() {
			index = -1
		}
		return w.message(content, f.Descriptor.Message(), &position{parent: at, field: f.Descriptor, index: index})
	case f.Descriptor.Kind() == protoreflect.StringKind, f.Descriptor.Kind() == protoreflect.BytesKind:
		w.cost += int64(len(content))
		return f.CheckText(content, func() string { return at.path(f.Descriptor) })
	}
	return nil
}

// elements is the number of elements in one occurrence of a list: packed numbers are many.
func elements(field protoreflect.FieldDescriptor, kind protowire.Type, value []byte) int {
	if kind != protowire.BytesType || field.Message() != nil {
		return 1
	}
	content, _ := protowire.ConsumeBytes(value)
	switch field.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return 1
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return len(content) / 4
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return len(content) / 8
	}
	n := 0
	for _, b := range content {
		if b < 0x80 { // the last byte of a number
			n++
		}
	}
	return n
}

func errNotOurs() error {
	return apierr.InvalidArgument("request", "the request is not a message of this RPC")
}
