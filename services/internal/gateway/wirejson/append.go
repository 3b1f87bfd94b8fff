package wirejson

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"sync"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/palisade/palisade/cmd/protoc-gen-go-json/jsonappend"
)

// errWire is what Append fails with when the bytes are no protobuf; errGenerated is a message that only AppendJSON writes.
var (
	errWire      = errors.New("wirejson: not the encoding of a message")
	errGenerated = errors.New("wirejson: written by AppendJSON")
)

// Append appends the JSON of a message of the type, which must have a generated AppendJSON, from its encoding.
func Append(b []byte, message protoreflect.MessageDescriptor, wire []byte) ([]byte, error) {
	p, err := planOf(message)
	if err != nil {
		return nil, err
	}
	w := writers.Get().(*writer)
	defer writers.Put(w)
	return w.message(b, p, wire)
}

// span is where the value of a field is.
type span struct {
	seen       bool
	start, end int    // of a length-delimited value; of a list, from its first item on
	value      uint64 // of a number
}

// writer holds what one call needs, to be used again by the next.
type writer struct {
	spans  []span // those of a message behind those of the message around it
	second int64  // the latest one that was written
	text   []byte // how: "2026-05-04T10:20:30
	latest latest
}

var writers = sync.Pool{New: func() any { return &writer{second: math.MinInt64} }}

// message writes one message.
func (w *writer) message(b []byte, p *plan, wire []byte) ([]byte, error) {
	start := len(b)
	if !p.generated {
		out, err := w.planned(b, p, wire)
		if !errors.Is(err, errGenerated) {
			return out, err
		}
	}
	decoded := p.messageType.New().Interface()
	if err := proto.Unmarshal(wire, decoded); err != nil {
		return nil, err
	}
	return jsonappend.Message(b[:start], decoded), nil
}

func (w *writer) planned(b []byte, p *plan, wire []byte) ([]byte, error) {
	base := len(w.spans)
	defer func() { w.spans = w.spans[:base] }()
	for range p.fields {
		w.spans = append(w.spans, span{})
	}
	variant, err := w.find(p, base, wire)
	if err != nil {
		return nil, err
	}
	start := len(b)
	for i := range p.fields {
		f, at := &p.fields[i], w.spans[base+i]
		switch {
		case f.variants&variant == 0:
		case !at.seen || !f.presence && !f.list && f.wire != protowire.BytesType && at.value == 0:
			b = append(b, f.absent...)
		case f.list:
			if b, err = w.items(append(b, f.name...), f, wire[at.start:]); err != nil {
				return nil, err
			}
		case f.kind == kindEnum && at.value == 0: // zero is "not set", wherever it stands
			b = append(b, f.absent...)
		default:
			if b, err = w.value(append(b, f.name...), f, at, wire); err != nil {
				return nil, err
			}
		}
	}
	return jsonappend.CloseObject(b, start), nil
}

// find notes where the fields of a message are, and returns the bits of its variant.
func (w *writer) find(p *plan, base int, wire []byte) (variant uint64, err error) {
	variant = anyVariant
	if p.variantBy != 0 {
		variant = 0
	}
	none := variant == 0
	for at := 0; at < len(wire); {
		tagged := at
		tag, n := varint(wire[at:])
		if n <= 0 {
			return 0, errWire
		}
		at += n
		number, wireType := protowire.DecodeTag(tag)
		if number <= 0 {
			return 0, errWire
		}
		var s span
		if s, at, err = value(wire, at, number, wireType); err != nil {
			return 0, err
		}
		if number == p.variantBy && wireType == protowire.BytesType {
			variant = p.variants[string(wire[s.start:s.end])]
			none = variant == 0
			continue
		}
		if int(number) >= len(p.slots) || p.slots[number] == 0 {
			continue // unknown: not shown
		}
		slot := int(p.slots[number]) - 1
		f, into := &p.fields[slot], &w.spans[base+slot]
		switch {
		case wireType != f.wire:
			return 0, errGenerated
		case f.list && into.seen:
			continue // items are read again from the first on
		case f.list:
			s.start = tagged
		case into.seen && f.wire == protowire.BytesType && f.kind >= kindTimestamp:
			return 0, errGenerated // two parts of one message
		}
		s.seen = !(f.kind == kindString || f.kind == kindBytes) || f.presence || f.list || s.end > s.start
		*into = s
	}
	if none {
		variant = otherVariant
	}
	return variant, nil
}

// otherVariant is a message of a variant that no field names: it has the fields of all variants only.
const otherVariant = 1 << 63

// value finds the value behind a tag.
func value(wire []byte, at int, number protowire.Number, wireType protowire.Type) (s span, end int, err error) {
	switch wireType {
	case protowire.VarintType:
		v, n := varint(wire[at:])
		if n <= 0 {
			return s, 0, errWire
		}
		return span{value: v}, at + n, nil
	case protowire.BytesType:
		size, n := varint(wire[at:])
		if n <= 0 || size > uint64(len(wire)-at-n) {
			return s, 0, errWire
		}
		at += n
		return span{start: at, end: at + int(size)}, at + int(size), nil
	case protowire.Fixed32Type:
		if len(wire)-at < 4 {
			return s, 0, errWire
		}
		return span{value: uint64(binary.LittleEndian.Uint32(wire[at:]))}, at + 4, nil
	case protowire.Fixed64Type:
		if len(wire)-at < 8 {
			return s, 0, errWire
		}
		return span{value: binary.LittleEndian.Uint64(wire[at:])}, at + 8, nil
	}
	n := protowire.ConsumeFieldValue(number, wireType, wire[at:])
	if n < 0 {
		return s, 0, errWire
	}
	return s, at + n, nil
}

// varint is binary.Uvarint with its most frequent case in line.
func varint(b []byte) (uint64, int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return binary.Uvarint(b)
}

// items writes a list: all values of the field in wire.
func (w *writer) items(b []byte, f *field, wire []byte) (_ []byte, err error) {
	start := len(b)
	for at := 0; at < len(wire); {
		tag, n := varint(wire[at:])
		if n <= 0 {
			return nil, errWire
		}
		number, wireType := protowire.DecodeTag(tag)
		var s span
		if s, at, err = value(wire, at+n, number, wireType); err != nil {
			return nil, err
		}
		if number != f.number {
			continue
		}
		if b, err = w.value(append(b, ','), f, s, wire); err != nil {
			return nil, err
		}
	}
	b[start] = '['
	return append(b, ']'), nil
}

// value writes one value.
func (w *writer) value(b []byte, f *field, at span, wire []byte) ([]byte, error) {
	switch f.kind {
	case kindString:
		return jsonappend.String(b, text(wire[at.start:at.end])), nil
	case kindBytes:
		return jsonappend.Bytes(b, wire[at.start:at.end]), nil
	case kindMessage:
		if at.end-at.start >= minKept && at.end-at.start <= maxKept {
			return w.kept(b, f.message, wire[at.start:at.end])
		}
		return w.message(b, f.message, wire[at.start:at.end])
	case kindTimestamp:
		return w.timestamp(b, wire[at.start:at.end])
	case kindBool:
		return strconv.AppendBool(b, at.value != 0), nil
	case kindInt32:
		return strconv.AppendInt(b, int64(int32(at.value)), 10), nil
	case kindInt64:
		return strconv.AppendInt(b, int64(at.value), 10), nil
	case kindUint64:
		return strconv.AppendUint(b, at.value, 10), nil
	case kindQuotedInt64:
		return jsonappend.QuotedInt64(b, int64(at.value)), nil
	case kindQuotedUint64:
		return jsonappend.QuotedUint64(b, at.value), nil
	case kindFloat:
		return jsonappend.Float(b, math.Float32frombits(uint32(at.value))), nil
	case kindDouble:
		return jsonappend.Double(b, math.Float64frombits(at.value)), nil
	case kindEnum:
		if name, known := f.enum[int32(at.value)]; known {
			return append(b, name...), nil
		}
		return strconv.AppendInt(b, int64(int32(at.value)), 10), nil
	}
	return nil, errGenerated
}

// timestamp writes a time. The times of a list mostly lie in the same second as the one before.
func (w *writer) timestamp(b, wire []byte) ([]byte, error) {
	var seconds int64
	var nanos int32
	for at := 0; at < len(wire); {
		tag, n := varint(wire[at:])
		if n <= 0 {
			return nil, errWire
		}
		v, m := varint(wire[at+n:])
		if m <= 0 {
			return nil, errWire
		}
		switch tag {
		case 1 << 3:
			seconds = int64(v)
		case 2 << 3:
			nanos = int32(v)
		default:
			return nil, errGenerated
		}
		at += n + m
	}
	if seconds != w.second || len(w.text) == 0 {
		w.second, w.text = seconds, jsonappend.Time(w.text[:0], seconds, 0)
		w.text = w.text[:len(w.text)-len(`.000000Z"`)]
	}
	if seconds < jsonappend.MinSeconds || seconds > jsonappend.MaxSeconds {
		return jsonappend.Time(b, seconds, nanos), nil
	}
	b = append(b, w.text...)
	return jsonappend.Fraction(b, nanos), nil
}

// text is b as a string, without a copy; it is not kept.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
