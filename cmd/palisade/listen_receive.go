package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// maxWebhook is the maximum size of a body in bytes.
const maxWebhook = 32 << 20

// webhookReceiver answers like a real receiver, and prints the events.
type webhookReceiver struct {
	secret  string
	fail    float64
	count   int
	now     func() time.Time
	printer eventPrinter
	enough  chan struct{} // closed after count distinct ids

	mu    sync.Mutex // guards the fields below, and the printer
	seen  map[string]bool
	tally listenTally
}

func newWebhookReceiver(o listenOptions, std streams) *webhookReceiver {
	r := &webhookReceiver{secret: o.secret, fail: o.fail, count: o.count, now: std.now, enough: make(chan struct{}), seen: map[string]bool{}}
	if o.output == "json" {
		encoder := json.NewEncoder(std.out)
		encoder.SetEscapeHTML(false)
		r.printer = jsonEvents{encoder}
	} else {
		r.printer = textEvents{std.out}
	}
	return r
}

// ServeHTTP implements http.Handler. Some senders probe with GET or OPTIONS before they post.
func (r *webhookReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	switch request.Method {
	case http.MethodPost:
		r.receive(w, request)
	case http.MethodGet, http.MethodHead:
		answerJSON(w, http.StatusOK, "message", "palisade listen: POST webhooks here")
	case http.MethodOptions:
		w.Header().Set("Allow", "POST, GET, HEAD, OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Allow", "POST, GET, HEAD, OPTIONS")
		answerJSON(w, http.StatusMethodNotAllowed, "error", "webhooks use POST, got "+request.Method)
	}
}

func (r *webhookReceiver) receive(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxWebhook))
	delivery := listenEvent{Time: r.now().Format(time.RFC3339), ID: request.Header.Get(webhooks.HeaderWebhookID)}
	if delivery.ID == "" { // senders other than Palisade have no id: messages with the same body are duplicates
		sum := sha256.Sum256(body)
		delivery.ID = "sha256:" + hex.EncodeToString(sum[:8])
	}
	if err != nil {
		status, reason := http.StatusBadRequest, "the body is incomplete"
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			status, reason = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)
		}
		r.refuse(w, delivery, status, reason)
		return
	}
	if err := verifySignatures(r.secret, request.Header, body); err != nil {
		r.refuse(w, delivery, http.StatusUnauthorized, err.Error())
		return
	}
	events, err := parseEvents(body)
	if err != nil {
		r.refuse(w, delivery, http.StatusBadRequest, "the body is not JSON: "+err.Error())
		return
	}
	if rand.Float64() < r.fail {
		delivery.Kind, delivery.Status, delivery.Reason = "failed", http.StatusInternalServerError, "on purpose (--fail)"
		r.note(delivery, func(t *listenTally) { t.failed++ })
		answerJSON(w, delivery.Status, "error", "failed on purpose")
		return
	}
	r.accept(delivery, events)
	answerJSON(w, http.StatusOK, "message", "ok")
}

func (r *webhookReceiver) refuse(w http.ResponseWriter, delivery listenEvent, status int, reason string) {
	delivery.Kind, delivery.Status, delivery.Reason = "refused", status, reason
	r.note(delivery, func(t *listenTally) {
		if status == http.StatusUnauthorized {
			t.badSignature++
		} else {
			t.malformed++
		}
	})
	answerJSON(w, status, "error", reason)
}

// note prints a rejected message.
func (r *webhookReceiver) note(e listenEvent, count func(*listenTally)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.requests++
	count(&r.tally)
	r.printer.print(e)
}

// accept prints the events of an accepted message. A message without events also gets a line.
func (r *webhookReceiver) accept(delivery listenEvent, events []listenEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.requests++
	r.tally.delivered++
	duplicate := r.seen[delivery.ID]
	r.seen[delivery.ID] = true
	r.tally.different = len(r.seen)
	if duplicate {
		r.tally.duplicates++
	}
	if len(events) == 0 {
		events = []listenEvent{{Kind: "empty"}}
	}
	for _, e := range events {
		e.Time, e.ID, e.Duplicate, e.Status = delivery.Time, delivery.ID, duplicate, http.StatusOK
		if !duplicate {
			r.tally.count(e.Kind)
		}
		r.printer.print(e)
	}
	if !duplicate && len(r.seen) == r.count {
		close(r.enough)
	}
}

// parseEvents parses a body: an array of findings, or one scan (facts section 9). Other content, such as Slack items,
// has the kind "other".
func parseEvents(body []byte) ([]listenEvent, error) {
	var items []json.RawMessage
	var one json.RawMessage
	if err := json.Unmarshal(body, &one); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(one, &items); err != nil {
		items = []json.RawMessage{one}
	}
	events := make([]listenEvent, 0, len(items))
	for _, item := range items {
		events = append(events, parseEvent(item))
	}
	return events, nil
}

func parseEvent(item json.RawMessage) listenEvent {
	var message struct {
		Finding *struct {
			CheckID  string `json:"check_id"`
			Path     string `json:"path"`
			Line     int64  `json:"line"`
			RepoName string `json:"repo_name"`
			Ref      string `json:"ref"`
		} `json:"semgrep_finding"`
		Scan *struct {
			ID int64 `json:"id"`
		} `json:"semgrep_scan"`
	}
	if err := json.Unmarshal(item, &message); err != nil {
		return listenEvent{Kind: "other", Payload: item}
	}
	switch f, s := message.Finding, message.Scan; {
	case f != nil:
		return listenEvent{Kind: "finding", Rule: f.CheckID, Path: f.Path, Line: f.Line, Project: f.RepoName, Ref: f.Ref, Payload: item}
	case s != nil:
		return listenEvent{Kind: "scan", Scan: s.ID, Payload: item}
	}
	return listenEvent{Kind: "other", Payload: item}
}

func answerJSON(w http.ResponseWriter, status int, key, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{key: text})
}
