package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	anchorQueue   = "audit"
	anchorTimeout = 30 * time.Second
	syslogPort    = "514"
)

// exportAnchors is the domain that exports anchors to the configured destination. Only nodes with a destination work on
// its queue.
func exportAnchors(d *server.Deps) server.Parts {
	if d.Config.AuditAnchor == "" {
		return server.Parts{}
	}
	w := &anchorWorker{store: d.Store, trail: d.Trail, log: d.Log, to: d.Config.AuditAnchor, guard: d.Egress, last: map[int64]audit.Anchor{}}
	return server.Parts{Background: []jobs.Work{{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, w) },
		Periodic: []*river.PeriodicJob{jobs.Every(d.Config.AuditAnchorEvery, anchorExport{})},
		Queues:   []jobs.Queue{{Name: anchorQueue, Workers: 1}},
	}}}
}

// anchorExport is the periodic job.
type anchorExport struct{}

// Kind is the name in the queue.
func (anchorExport) Kind() string { return "audit_anchor" }

// InsertOpts keep runs from piling up while the destination is down.
func (anchorExport) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = anchorQueue
	return opts
}

type anchorWorker struct {
	river.WorkerDefaults[anchorExport]
	store *store.Store
	trail *audit.Trail
	log   *slog.Logger
	to    string
	guard *egress.Guard

	mu   sync.Mutex
	last map[int64]audit.Anchor // last export of this process, by deployment
}

// Work exports the chain heads of the trails that have grown.
func (w *anchorWorker) Work(ctx context.Context, _ *river.Job[anchorExport]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows, err := w.store.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).All(tenant.System(ctx))
	if err != nil {
		return err
	}
	var lines [][]byte
	sent := map[int64]audit.Anchor{}
	for _, d := range rows {
		line, known, err := w.next(ctx, d)
		if err != nil {
			return fmt.Errorf("anchor of %s: %w", d.Slug, err)
		}
		if line != nil {
			lines, sent[d.ID] = append(lines, line), known
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if err := sendAnchors(ctx, w.to, w.guard, lines); err != nil {
		return fmt.Errorf("audit-anchor: %w", err)
	}
	for id, known := range sent {
		w.last[id] = known
	}
	return nil
}

// next returns the line of a deployment, or nil when there is nothing new. It logs a damaged trail, or one that is
// behind the last export, at once.
func (w *anchorWorker) next(ctx context.Context, d *ent.Deployment) ([]byte, audit.Anchor, error) {
	last, again := w.last[d.ID]
	if again {
		held, err := w.trail.Holds(ctx, d.ID, last)
		if err != nil {
			return nil, last, err
		}
		if !held {
			w.log.ErrorContext(ctx, "the audit trail was rolled back or replaced outside of Palisade (see: palisade audit verify)",
				"deployment_id", d.ID, "known_sequence", last.Sequence)
		}
	}
	a, err := w.trail.Anchor(ctx, d.ID, d.Slug)
	if errors.Is(err, audit.ErrHead) {
		w.log.ErrorContext(ctx, "no anchor of an audit trail is exported", "deployment_id", d.ID, "error", err)
		return nil, last, nil
	}
	if err != nil {
		return nil, last, err
	}
	known, err := a.Known()
	if err != nil || again && known.Sequence == last.Sequence && bytes.Equal(known.Hash, last.Hash) {
		return nil, last, err
	}
	return a.Line(), known, nil
}

// sendAnchors sends lines to the configured destination.
func sendAnchors(ctx context.Context, to string, guard *egress.Guard, lines [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, anchorTimeout)
	defer cancel()
	u, err := url.Parse(to)
	if err != nil {
		return errors.New("is not a URL") // the text of err may contain a secret
	}
	switch u.Scheme {
	case "file":
		return appendFile(u.Path, bytes.Join(lines, nil))
	case "syslog", "syslog+udp":
		return sendSyslog(ctx, u, guard, lines)
	default:
		return postAnchors(ctx, u, guard, bytes.Join(lines, nil))
	}
}

func appendFile(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func postAnchors(ctx context.Context, u *url.URL, guard *egress.Guard, text []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(text))
	if err != nil {
		return errors.New("is not a URL")
	}
	request.Header.Set("Content-Type", "application/x-ndjson")
	response, err := guard.Client(egress.Limits{Timeout: anchorTimeout, MaxResponse: 64 << 10}).Do(request)
	if err != nil {
		return errors.New(egress.Describe(err))
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection can be reused
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return fmt.Errorf("the receiver answered %s, want a status of 200 to 299", response.Status)
	}
	return nil
}

// sendSyslog sends each line as a message of RFC 5424, over TCP with a length prefix (RFC 6587).
func sendSyslog(ctx context.Context, u *url.URL, guard *egress.Guard, lines [][]byte) error {
	port := u.Port()
	if port == "" {
		port = syslogPort
	}
	address := net.JoinHostPort(u.Hostname(), port)
	stream := u.Scheme == "syslog"
	network := "udp"
	if stream {
		network = "tcp"
	}
	allowed, err := guard.Allowing(address) // the operator configured it
	if err != nil {
		return err
	}
	conn, err := allowed.Connect(ctx, network, address, anchorTimeout)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "-"
	}
	const notice = 13<<3 | 5 // facility "log audit", severity "notice"
	for _, line := range lines {
		message := fmt.Sprintf("<%d>1 %s %s palisade %d audit-anchor - %s", notice, time.Now().UTC().Format(time.RFC3339), host, os.Getpid(), bytes.TrimSpace(line))
		if stream {
			message = strconv.Itoa(len(message)) + " " + message
		}
		if _, err := io.WriteString(conn, message); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	return conn.Close()
}
