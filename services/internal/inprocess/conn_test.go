package inprocess_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/inprocess"
)

// pinger is a service of one RPC.
type pinger struct {
	platformv1.UnimplementedMiscellaneousServiceServer
	ping func(context.Context) error
}

func (p *pinger) Ping(ctx context.Context, _ *platformv1.PingRequest) (*platformv1.PingResponse, error) {
	return &platformv1.PingResponse{}, p.ping(ctx)
}

func connect(p *pinger, unary ...grpc.UnaryServerInterceptor) *inprocess.Conn {
	conn := inprocess.New(inprocess.Config{Unary: unary, Logger: slog.New(slog.DiscardHandler)})
	platformv1.RegisterMiscellaneousServiceServer(conn, p)
	return conn
}

func TestCall(t *testing.T) {
	type key struct{}
	p := &pinger{}
	var order []string
	link := func(name string) grpc.UnaryServerInterceptor {
		return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			order = append(order, name+" "+info.FullMethod)
			return handler(ctx, request)
		}
	}
	client := platformv1.NewMiscellaneousServiceClient(connect(p, link("outer"), link("inner")))
	outer, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "mine"), time.Hour)
	defer cancel()
	outer = metadata.AppendToOutgoingContext(outer, "authorization", "Bearer x")
	p.ping = func(ctx context.Context) error {
		if ctx.Value(key{}) != nil {
			t.Error("a value of the caller's context reached the handler")
		}
		if caller := inprocess.Caller(ctx); caller == nil || caller.Value(key{}) != "mine" {
			t.Error("the caller's context cannot be found")
		}
		if _, ok := ctx.Deadline(); !ok {
			t.Error("no deadline")
		}
		if got := metadata.ValueFromIncomingContext(ctx, "authorization"); len(got) != 1 || got[0] != "Bearer x" {
			t.Errorf("metadata %v", got)
		}
		if err := errors.Join(grpc.SetHeader(ctx, metadata.Pairs("a", "1")), grpc.SendHeader(ctx, metadata.Pairs("a", "2")),
			grpc.SetTrailer(ctx, metadata.Pairs("b", "3"))); err != nil {
			t.Error(err)
		}
		if grpc.SetHeader(ctx, metadata.Pairs("a", "3")) == nil {
			t.Error("a header after the headers")
		}
		return nil
	}
	var header, trailer metadata.MD
	if _, err := client.Ping(outer, &platformv1.PingRequest{}, grpc.Header(&header), grpc.Trailer(&trailer)); err != nil {
		t.Fatal(err)
	}
	if len(header["a"]) != 2 || len(trailer["b"]) != 1 {
		t.Errorf("header %v, trailer %v", header, trailer)
	}
	name := platformv1.MiscellaneousService_Ping_FullMethodName
	if len(order) != 2 || order[0] != "outer "+name || order[1] != "inner "+name {
		t.Errorf("interceptors: %v", order)
	}
	if inprocess.Caller(t.Context()) != nil {
		t.Error("a context of no call has a caller")
	}
}

type derivedKey struct{}

// Cancelling the caller's context cancels the handler's context and everything derived from it.
func TestCancellation(t *testing.T) {
	p := &pinger{}
	client := platformv1.NewMiscellaneousServiceClient(connect(p))
	outer, cancel := context.WithCancel(t.Context())
	p.ping = func(ctx context.Context) error {
		derived, stop := context.WithTimeout(context.WithValue(ctx, derivedKey{}, 1), time.Hour)
		defer stop()
		cancel()
		<-derived.Done()
		return derived.Err()
	}
	if _, err := client.Ping(outer, &platformv1.PingRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	p.ping = func(context.Context) error {
		t.Error("a call with a cancelled context")
		return nil
	}
	if _, err := client.Ping(outer, &platformv1.PingRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFailures(t *testing.T) {
	p := &pinger{ping: func(context.Context) error { panic("oops") }}
	conn := connect(p)
	if _, err := platformv1.NewMiscellaneousServiceClient(conn).Ping(t.Context(), &platformv1.PingRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("panic: %v", err)
	}
	err := conn.Invoke(t.Context(), "/no.Such/Method", &platformv1.PingRequest{}, &platformv1.PingResponse{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("unknown method: %v", err)
	}
	p.ping = func(context.Context) error { return nil }
	if conn.Invoke(t.Context(), platformv1.MiscellaneousService_Ping_FullMethodName, &platformv1.PingRequest{}, 7) == nil {
		t.Error("an answer into an int")
	}
}

func BenchmarkCall(b *testing.B) {
	client := platformv1.NewMiscellaneousServiceClient(connect(&pinger{ping: func(context.Context) error { return nil }}))
	ctx := metadata.AppendToOutgoingContext(b.Context(), "authorization", "Bearer x")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Ping(ctx, &platformv1.PingRequest{}); err != nil {
			b.Fatal(err)
		}
	}
}
