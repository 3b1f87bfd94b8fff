package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/palisade/palisade/services/internal/gateway/lenient"
	"github.com/palisade/palisade/services/internal/intake"
)

// appender is the interface that protoc-gen-go-json generates for all our messages.
type appender interface {
	AppendJSON(b []byte) []byte
}

// marshaler is the only marshaler of the gateway. It ignores the content types of a request.
type marshaler struct {
	unknown func(fullMethod string, count int)
}

var _ runtime.Marshaler = (*marshaler)(nil)

func (*marshaler) ContentType(any) string { return "application/json" }

// answer is a response message with its call.
type answer struct {
	message proto.Message
	call    *call
}

// Marshal encodes a response.
func (m *marshaler) Marshal(value any) ([]byte, error) {
	if _, none := value.(noBody); none {
		return nil, nil
	}
	var buffer *[]byte
	if to, ok := value.(answer); ok {
		value, buffer = to.message, to.call.buffer
	}
	message, ok := value.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("gateway: cannot write a %T as JSON", value)
	}
	own, ok := value.(appender)
	if !ok {
		encoded, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
		if err != nil {
			return nil, err
		}
		var compact bytes.Buffer
		err = json.Compact(&compact, encoded)
		return compact.Bytes(), err
	}
	if buffer == nil {
		return own.AppendJSON(nil), nil
	}
	*buffer = own.AppendJSON((*buffer)[:0])
	return *buffer, nil
}

// Unmarshal decodes a body without a call. The generated code does not use it.
func (m *marshaler) Unmarshal(data []byte, value any) error {
	message, ok := value.(proto.Message)
	if !ok {
		return fmt.Errorf("gateway: cannot read JSON into a %T", value)
	}
	_, err := lenient.Body(data, message, nil)
	return err
}

func (m *marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(value any) error {
		b, err := m.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
}

// NewDecoder leaves the body to the interceptors, which call decode after they have authorized the caller.
func (*marshaler) NewDecoder(io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(any) error { return nil })
}

// decode decodes the body of a call into a message that already has the values in the path.
func (m *marshaler) decode(ctx context.Context, c *call, message proto.Message) error {
	b := c.body
	var data bytes.Buffer
	if b.size > 0 {
		data.Grow(int(min(b.size, intake.Small)) + bytes.MinRead)
	}
	if _, err := data.ReadFrom(b); err != nil {
		return readError(err)
	}
	into := message.ProtoReflect()
	read := into.New()
	var decoded lenient.Decoded
	err := b.room.Decode(ctx, func() (err error) {
		decoded, err = lenient.Body(data.Bytes(), read.Interface(), b.room.Spend)
		return err
	})
	if err != nil {
		return err
	}
	if decoded.Unknown > 0 {
		m.unknown(c.route.fullMethod, decoded.Unknown)
	}
	read.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if !slices.Contains(c.route.pathFields, field.Name()) {
			into.Set(field, value)
		}
		return true
	})
	fillUpdateMask(into, decoded.Present, c.route.pathFields)
	return nil
}

// fillUpdateMask sets the update_mask of a request that has none to the names in the body: over HTTP a PATCH changes
// the fields that it names. Fields in the path are not part of the change.
func fillUpdateMask(message protoreflect.Message, present []protoreflect.FieldDescriptor, pathFields []protoreflect.Name) {
	field := message.Descriptor().Fields().ByName("update_mask")
	if field == nil || field.Message() == nil || field.IsList() || message.Has(field) ||
		field.Message().FullName() != "google.protobuf.FieldMask" {
		return
	}
	mask := &fieldmaskpb.FieldMask{}
	for _, named := range present {
		if named != field && !slices.Contains(pathFields, named.Name()) {
			mask.Paths = append(mask.Paths, string(named.Name()))
		}
	}
	if len(mask.GetPaths()) > 0 {
		message.Set(field, protoreflect.ValueOfMessage(mask.ProtoReflect()))
	}
}
