package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"

	"github.com/palisade/palisade/services/internal/apierr"
)

// validators are cached by their methods: compiling the rules takes most of a start, and tests start many servers.
var validators = struct {
	sync.Mutex
	of map[string]protovalidate.Validator
}{of: map[string]protovalidate.Validator{}}

// NewValidator returns a validator for the requests of methods ("/package.Service/Method"). It compiles their rules
// now, so that a broken rule stops the start and the first request does not pay for it.
func NewValidator(methods []string) (protovalidate.Validator, error) {
	methods = slices.Sorted(slices.Values(methods))
	key := strings.Join(methods, " ")
	validators.Lock()
	defer validators.Unlock()
	if known := validators.of[key]; known != nil {
		return known, nil
	}
	v, err := compileRules(methods)
	if err == nil {
		validators.of[key] = v
	}
	return v, err
}

func compileRules(methods []string) (protovalidate.Validator, error) {
	var requests []proto.Message
	for _, method := range methods {
		if request, err := newRequest(method); err == nil {
			requests = append(requests, request)
		}
	}
	v, err := protovalidate.New(protovalidate.WithMessages(requests...))
	if err != nil {
		return nil, fmt.Errorf("validation rules: %w", err)
	}
	for _, request := range requests {
		// The constructor compiles, but reports errors only when a message is validated.
		var broken *protovalidate.CompilationError
		if errors.As(v.Validate(request), &broken) {
			return nil, fmt.Errorf("validation rules of %s: %w", request.ProtoReflect().Descriptor().FullName(), broken)
		}
	}
	return v, nil
}

// validate checks each incoming message against the rules of its proto.
func validate(v protovalidate.Validator) Link {
	return Link{
		Name: "protovalidate",
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := callFrom(ctx).unreadable; err != nil {
				return nil, err
			}
			if err := validateMessage(v, req); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		},
		Stream: func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			return handler(srv, &validatedStream{ServerStream: ss, validator: v})
		},
	}
}

type validatedStream struct {
	grpc.ServerStream
	validator protovalidate.Validator
}

// RecvMsg receives the next message and refuses it when it breaks a rule.
func (s *validatedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return validateMessage(s.validator, m)
}

func validateMessage(v protovalidate.Validator, m any) error {
	message, ok := m.(proto.Message)
	if !ok {
		return fmt.Errorf("a request of type %T, want a protobuf message", m)
	}
	err := v.Validate(message)
	var invalid *protovalidate.ValidationError
	if errors.As(err, &invalid) {
		return apierr.Validation(invalid, message.ProtoReflect().Descriptor())
	}
	if err != nil {
		return err
	}
	return refuseNUL(message)
}

// refuseNUL refuses texts with a NUL character: PostgreSQL cannot store it, and LIKE of SQLite stops there. Reports
// arrive as bytes and are cleaned where they are parsed.
func refuseNUL(message proto.Message) error {
	return protorange.Range(message.ProtoReflect(), func(at protopath.Values) error {
		last := at.Index(-1)
		text, _ := last.Value.Interface().(string)
		if last.Step.Kind() == protopath.MapIndexStep {
			text += last.Step.MapIndex().String()
		}
		if strings.IndexByte(text, 0) < 0 {
			return nil
		}
		field := jsonName(at.Path)
		return apierr.InvalidArgument(field, "%s must not contain the character U+0000", field)
	})
}

// jsonName is the path of a value in the form of clients: target.project, severities[2].
func jsonName(path protopath.Path) string {
	var name strings.Builder
	for _, step := range path[1:] { // the first is the request itself
		switch step.Kind() {
		case protopath.FieldAccessStep:
			if name.Len() > 0 {
				name.WriteByte('.')
			}
			name.WriteString(step.FieldDescriptor().JSONName())
		case protopath.ListIndexStep:
			fmt.Fprintf(&name, "[%d]", step.ListIndex())
		case protopath.MapIndexStep:
			fmt.Fprintf(&name, "[%s]", apierr.Quote(step.MapIndex().String()))
		}
	}
	return name.String()
}
