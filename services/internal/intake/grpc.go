package intake

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/bounds"
)

// headerSize is the length of the header of a gRPC message: one byte of flags, four bytes of length.
const headerSize = 5

// chunk is how much of a message is received at once, in bytes.
const chunk = 64 << 10

// alwaysShort is the length in bytes of compressed data that cannot become large: gzip expands at most about a
// thousandfold.
const alwaysShort = 1 << 10

// source is the stream that the messages of a gRPC call are read from. It is grpc-go's own transport stream: the
// server's RecvMsg has one limit for all callers, has no budget, and decompresses before any check. A test fails when a
// version of grpc-go no longer has these methods.
type source interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
	WriteStatus(st *status.Status) error
}

// ReceiveGRPC receives the next message of the call of ctx, within the share. Errors: io.EOF at the end of the
// messages; UNIMPLEMENTED for an unsupported compression; RESOURCE_EXHAUSTED without REASON_RATE_LIMITED for a message
// that is too large, and with it when there is no room; INVALID_ARGUMENT as in package bounds.
func (s *Share) ReceiveGRPC(ctx context.Context, into proto.Message) error {
	from, ok := grpc.ServerTransportStreamFromContext(ctx).(source)
	if !ok {
		return apierr.Internal(fmt.Errorf("a gRPC stream of type %T", grpc.ServerTransportStreamFromContext(ctx)))
	}
	var header [headerSize]byte
	if s.limits.First {
		defer s.deadline(from)()
	}
	if err := from.ReadMessageHeader(header[:]); err != nil {
		return err
	}
	if !s.limits.First {
		defer s.deadline(from)()
	}
	compressed := header[0] == 1
	if compressed && (from.RecvCompress() != "gzip" || !s.limits.Compressed) {
		return apierr.New(codes.Unimplemented, errorsv1.Reason_REASON_NOT_IMPLEMENTED,
			"the message is compressed, which this call does not accept: send it as it is")
	}
	if header[0] > 1 {
		return errNotGRPC()
	}
	size := int64(binary.BigEndian.Uint32(header[1:]))
	if size > s.limits.MaxSize {
		return tooLarge(s.limits.MaxSize)
	}
	data, err := s.receive(from, size)
	if err != nil {
		return err
	}
	if !compressed {
		return s.Decode(ctx, func() error { return s.decode(data, into) })
	}
	decompress := func() error {
		plain, err := s.decompress(data)
		if err != nil {
			return err
		}
		return s.decode(plain, into)
	}
	if size <= alwaysShort {
		return decompress()
	}
	return s.inTurn(ctx, decompress)
}

// deadline ends the call when the message has not arrived in time, which also ends the waiting read. The returned
// function cancels the deadline.
func (s *Share) deadline(from source) (stop func() bool) {
	if s.limits.Timeout <= 0 {
		return func() bool { return true }
	}
	return time.AfterFunc(s.limits.Timeout, func() {
		late := apierr.DeadlineExceeded(fmt.Errorf("the message did not arrive in %v", s.limits.Timeout))
		_ = from.WriteStatus(status.Convert(apierr.Map(late)))
	}).Stop
}

// receive reads size bytes and reserves memory as they arrive.
func (s *Share) receive(from source, size int64) ([]byte, error) {
	data := make([]byte, 0, min(size, chunk))
	for int64(len(data)) < size {
		next := min(chunk, size-int64(len(data)))
		if err := s.Receive(s.received + next); err != nil {
			return nil, err
		}
		var err error
		if data, err = read(from, data, int(next)); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// read appends the next n bytes to data.
func read(from source, data []byte, n int) ([]byte, error) {
	buffers, err := from.Read(n)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errNotGRPC()
		}
		return data, err
	}
	defer buffers.Free()
	for _, b := range buffers {
		data = append(data, b.ReadOnlyData()...)
	}
	return data, nil
}

// decompress reserves memory for the output as it is produced.
func (s *Share) decompress(data []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, errNotGRPC()
	}
	var out bytes.Buffer
	for {
		if err := s.Receive(s.received + chunk); err != nil {
			return nil, err
		}
		n, err := io.CopyN(&out, reader, chunk)
		switch {
		case int64(out.Len()) > s.limits.MaxSize:
			return nil, tooLarge(s.limits.MaxSize)
		case errors.Is(err, io.EOF):
			return out.Bytes(), nil
		case err != nil || n == 0:
			return nil, errNotGRPC()
		}
	}
}

// decode decodes data after reserving memory for the result.
func (s *Share) decode(data []byte, into proto.Message) error {
	options := proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: bounds.MaxDepth + 1}
	cost, err := bounds.Wire(data, into.ProtoReflect().Descriptor())
	if err != nil {
		// Authorization errors come before errors of the request, and need the deployment that the request names.
		if options.Unmarshal(bounds.Scalars(data, into.ProtoReflect().Descriptor()), into) != nil {
			proto.Reset(into)
		}
		return err
	}
	if err := s.Spend(cost); err != nil {
		return err
	}
	if err := options.Unmarshal(data, into); err != nil {
		proto.Reset(into)
		return errNotGRPC()
	}
	return nil
}

func tooLarge(most int64) error {
	return apierr.TooLarge("the message must have at most %d bytes", most)
}

func errNotGRPC() error {
	return apierr.InvalidArgument("request", "the request is not a message of this RPC")
}
