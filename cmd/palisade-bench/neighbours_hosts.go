package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// Paths of the receivers.
const (
	pathNeighbour = "/neighbour"
	pathSlow      = "/slow/" // followed by a name
)

// slowAnswer is the response time of a slow receiver and of the model: longer than a sender's timeout, and longer than
// any measurement.
const slowAnswer = time.Minute

// quietTime is the time without a message after which there are no more.
const quietTime = 500 * time.Millisecond

// hosts are the servers that Palisade calls: receivers of notifications and a model.
type hosts struct {
	base     string
	stop     func() error
	messages chan struct{} // messages to the neighbour
	released chan struct{}
	once     sync.Once
	drop     func() error // their database
}

func startHosts(ctx context.Context) (*hosts, error) {
	h := &hosts{messages: make(chan struct{}, 1000), released: make(chan struct{}), drop: func() error { return nil }}
	mux := http.NewServeMux()
	mux.HandleFunc(pathNeighbour, func(http.ResponseWriter, *http.Request) { h.messages <- struct{}{} })
	mux.HandleFunc(pathSlow, func(_ http.ResponseWriter, r *http.Request) { h.stall(r.Context()) })
	mux.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		h.stall(r.Context())
		_ = json.NewEncoder(w).Encode(object{"error": object{"message": "overloaded"}})
	})
	running, err := serveHandler(ctx, mux)
	h.base, h.stop = "http://"+running.http, running.stop
	return h, err
}

// stall does not answer for a long time.
func (h *hosts) stall(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-h.released:
	case <-time.After(slowAnswer):
	}
}

// release lets all stalled requests return.
func (h *hosts) release() { h.once.Do(func() { close(h.released) }) }

func (h *hosts) close() error {
	h.release()
	return errors.Join(h.stop(), h.drop())
}

// quiet waits until no message has arrived for quietTime, because earlier uploads cause messages, too.
func (h *hosts) quiet(ctx context.Context) {
	for {
		select {
		case <-h.messages:
		case <-time.After(quietTime):
			return
		case <-ctx.Done():
			return
		}
	}
}
