package llm

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/palisade/palisade/services/internal/egress"
)

// Config is what the operator sets.
type Config struct {
	// URL is the base URL of the API ("https://api.openai.com/v1"); empty: nothing is asked.
	URL string
	// Key is sent as a bearer token; empty when the API needs none.
	Key string
	// Model is asked when a question names none.
	Model string
	// Timeout is for one answer, retries included; 0 means two minutes.
	Timeout time.Duration
	// InputPrice and OutputPrice are in US dollars for a million tokens.
	InputPrice, OutputPrice float64
}

// Limits of what a provider is asked.
const (
	defaultTimeout = 2 * time.Minute
	// maxAnswer is in bytes: what the API sends around the answer included.
	maxAnswer = 8 << 20
	// maxRetries of one call after 408, 409, 429, 5xx and connections that break, unless Retry-After asks for a longer
	// wait than maxRetryDelay.
	maxRetries    = 2
	minRetryDelay = 500 * time.Millisecond
	maxRetryDelay = 20 * time.Second
	// maxConcurrent questions of one node wait for answers; the others wait for their turn.
	maxConcurrent = 8
)

// Provider asks the configured model. It is safe for use by several goroutines.
type Provider struct {
	config Config
	client *http.Client
	turn   chan struct{}
	// format is the first of formats that the API is known to take.
	format atomic.Int32
	// proven: the API has taken a question in that format, so that what it does not take is odd itself.
	proven  atomic.Bool
	metrics metrics
}

// New returns a provider that calls through the guard. Without URL or Model it answers ErrNotConfigured.
func New(c Config, guard *egress.Guard) *Provider {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	return &Provider{
		config: c, turn: make(chan struct{}, maxConcurrent), metrics: newMetrics(),
		// No redirects: prompt and key stay where the operator sent them.
		client: guard.Client(egress.Limits{Timeout: c.Timeout, MaxResponse: maxAnswer}),
	}
}

// Configured reports whether there is a model to ask.
func (p *Provider) Configured() bool { return p.config.URL != "" && p.config.Model != "" }

// Named reports whether a name means this provider: the host of its URL ("api.openai.com"), or a part of it between
// dots ("openai") that is not the last. Case does not count.
func (p *Provider) Named(name string) bool {
	u, err := url.Parse(p.config.URL)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if name = strings.ToLower(name); name == host {
		return true
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	parts := strings.Split(host, ".")
	return slices.Contains(parts[:len(parts)-1], name)
}

// Question is what a model is asked.
type Question struct {
	// System says what the model is to do; Prompt is what it is to do it with.
	System, Prompt string
	// Schema is the JSON Schema of the answer; nil: any text will do. References to other documents are refused.
	Schema map[string]any
	// SchemaName tells schemas apart at the provider: letters, digits, _ and -, at most 64; empty means "answer".
	SchemaName string
	// Model is another than the configured one.
	Model string
	// MaxTokens bounds the answer; 0 means the model's own bound.
	MaxTokens int
}

// Answer is what the model said.
type Answer struct {
	// JSON fits the schema of the question; nil without one.
	JSON json.RawMessage
	// Text is the answer as it came.
	Text string
	// Model is the name by which the provider calls the one that answered.
	Model string
	// InputTokens and OutputTokens are of all calls that the answer took.
	InputTokens, OutputTokens int64
	// CostUSD is what these tokens cost by the configured prices.
	CostUSD float64
}

// Ask asks one question. An answer that does not fit the schema is asked for once more, with the reason. The Answer
// holds tokens and cost also beside an error. Errors: ErrNotConfigured, that of ctx, or one that IsPermanent can judge.
func (p *Provider) Ask(ctx context.Context, q Question) (Answer, error) {
	if !p.Configured() {
		return Answer{}, ErrNotConfigured
	}
	schema, err := compile(q.Schema)
	if err != nil {
		return Answer{}, err
	}
	if q.Model == "" {
		q.Model = p.config.Model
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	c := conversation{provider: p, question: q, answer: Answer{Model: q.Model}}
	err = c.run(ctx, schema)
	p.metrics.observe(c.answer, err)
	return c.answer, err
}

// countsCompletionTokens reports whether the API takes max_completion_tokens, the newer name of max_tokens, which
// models of the vendor itself refuse and most other servers know alone.
func (p *Provider) countsCompletionTokens() bool {
	u, err := url.Parse(p.config.URL)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
}

// Describe implements prometheus.Collector.
func (p *Provider) Describe(ch chan<- *prometheus.Desc) { p.metrics.Describe(ch) }

// Collect implements prometheus.Collector.
func (p *Provider) Collect(ch chan<- prometheus.Metric) { p.metrics.Collect(ch) }
