package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// The paths of the receivers.
const (
	pathNeighbour = "/neighbour"
	pathSlow      = "/slow/" // and a name
)

// slowAnswer is how long a slow receiver and the model take: longer than a sender waits for the first, and than
// anything is measured for the second.
const slowAnswer = time.Minute

// quietTime is how long no message comes when there is none.
const quietTime = 500 * time.Millisecond

// hosts are what the server calls: receivers of notifications and a model.
type hosts struct {
	base     string
	stop     func() error
	messages chan struct{} // of the neighbour
	released chan struct{}
	once     sync.Once
	drop     func() error // the database that came with them
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

// stall says nothing for a long time.
func (h *hosts) stall(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-h.released:
	case <-time.After(slowAnswer):
	}
}

// release lets all who wait have their answers.
func (h *hosts) release() { h.once.Do(func() { close(h.released) }) }

func (h *hosts) close() error {
	h.release()
	return errors.Join(h.stop(), h.drop())
}

// quiet waits until no message has come for quietTime: earlier uploads cause messages, too.
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
