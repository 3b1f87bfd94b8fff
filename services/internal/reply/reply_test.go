package reply_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/reply"
)

// encoded are the bytes of a field that no message knows.
const encoded = "\xfa\x7f\x03abc"

func answer(ctx context.Context) *platformv1.PingResponse {
	buffer := reply.Take(len(encoded))
	*buffer = append(*buffer, encoded...)
	message := &platformv1.PingResponse{}
	reply.Encoded(ctx, message, buffer)
	return message
}

// An answer leaves the outermost interceptor as its bytes, and only if the handler succeeded and returned it as it was.
func TestUnary(t *testing.T) {
	failed := errors.New("failed")
	for name, test := range map[string]struct {
		handler func(ctx context.Context) (any, error)
		wire    bool
		err     error
	}{
		"the answer":       {handler: func(ctx context.Context) (any, error) { return answer(ctx), nil }, wire: true},
		"a failure":        {handler: func(ctx context.Context) (any, error) { return answer(ctx), failed }, err: failed},
		"another message":  {handler: func(ctx context.Context) (any, error) { answer(ctx); return &platformv1.PingResponse{}, nil }},
		"another encoding": {handler: func(ctx context.Context) (any, error) { answer(ctx); return answer(t.Context()), nil }},
		"a changed message": {handler: func(ctx context.Context) (any, error) {
			message := answer(ctx)
			message.ProtoReflect().SetUnknown(append([]byte(encoded), encoded...))
			return message, nil
		}},
		"no encoding": {handler: func(context.Context) (any, error) { return &platformv1.PingResponse{}, nil }},
	} {
		var message proto.Message
		got, err := reply.Unary(t.Context(), nil, nil, func(ctx context.Context, _ any) (any, error) {
			returned, err := test.handler(ctx)
			message, _ = returned.(proto.Message)
			return returned, err
		})
		if !errors.Is(err, test.err) {
			t.Errorf("%s: %v", name, err)
		}
		wire, ok := got.(*reply.Wire)
		if ok != test.wire || !ok && got != message {
			t.Errorf("%s: got a %T", name, got)
		}
		if !ok {
			continue
		}
		data := wire.Data()
		if string(data.Materialize()) != encoded || len(message.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%s: sends %q and keeps %q", name, data.Materialize(), message.ProtoReflect().GetUnknown())
		}
		data.Free()
	}
}

// The memory of an answer in another form is free once, and only with that answer.
func TestFree(t *testing.T) {
	m := &reply.Memory{}
	message := answer(reply.NewContext(t.Context(), m))
	other := answer(t.Context())
	m.Free(other)
	if string(other.ProtoReflect().GetUnknown()) != encoded || string(message.ProtoReflect().GetUnknown()) != encoded {
		t.Error("the memory of another answer was freed")
	}
	message = answer(reply.NewContext(t.Context(), m))
	m.Free(message)
	m.Free(message)
	if len(message.ProtoReflect().GetUnknown()) > 0 {
		t.Error("the answer still holds memory that is free")
	}
}
