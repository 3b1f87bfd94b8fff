package inprocess

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// transport collects the metadata that a handler sends with its response.
type transport struct {
	name   string
	caller context.Context

	mu              sync.Mutex
	header, trailer metadata.MD
	sent, finished  bool
}

var _ grpc.ServerTransportStream = (*transport)(nil)

var errSent = errors.New("headers already sent")

// Method is the full name of the RPC.
func (t *transport) Method() string { return t.name }

// SetHeader adds to the header.
func (t *transport) SetHeader(md metadata.MD) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sent || t.finished {
		return errSent
	}
	t.header = with(t.header, md)
	return nil
}

// SendHeader adds to the header for the last time.
func (t *transport) SendHeader(md metadata.MD) error {
	err := t.SetHeader(md)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = true
	return err
}

// SetTrailer adds to the trailer.
func (t *transport) SetTrailer(md metadata.MD) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.finished {
		return errSent
	}
	t.trailer = with(t.trailer, md)
	return nil
}

// finish ends the call. A goroutine that outlives the handler can no longer change the metadata.
func (t *transport) finish() (header, trailer metadata.MD) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
	return t.header, t.trailer
}

func with(md, more metadata.MD) metadata.MD {
	if md == nil {
		md = make(metadata.MD, len(more))
	}
	for key, values := range more {
		md[key] = append(md[key], values...)
	}
	return md
}
