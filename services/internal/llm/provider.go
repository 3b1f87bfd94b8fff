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

// Config is set by the operator.
type Config struct {
	// URL is the base URL of the API ("https://api.openai.com/v1"). If empty, the provider is not configured.
	URL string
	// Key is sent as a bearer token; empty if the API needs none.
	Key string
	// Model is the default model.
	Model string
	// Timeout limits one answer, including retries; 0 means two minutes.
	Timeout time.Duration
	// InputPrice and OutputPrice are in US dollars per million tokens.
	InputPrice, OutputPrice float64
}

// Limits of calls.
const (
	defaultTimeout = 2 * time.Minute
	// maxAnswer limits the response body, in bytes.
	maxAnswer = 8 << 20
	// maxRetries is the number of retries after 408, 409, 429, 5xx and connection errors. A Retry-After longer than
	// maxRetryDelay is not retried.
	maxRetries    = 2
	minRetryDelay = 500 * time.Millisecond
	maxRetryDelay = 20 * time.Second
	// maxConcurrent limits the questions in flight on one node. Others wait.
	maxConcurrent = 8
)

// Provider asks the configured model. It is safe for concurrent use.
type Provider struct {
	config Config
	client *http.Client
	slots  chan struct{}
	// format is the first format that the API is known to support.
	format atomic.Int32
	// confirmed: a question in this format has succeeded, so a rejected schema is itself the problem.
	confirmed atomic.Bool
	metrics   metrics
}

// New returns a provider that calls through the egress guard. Without URL or Model it returns ErrNotConfigured for
// each question.
func New(c Config, guard *egress.Guard) *Provider {
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	return &Provider{
		config: c, slots: make(chan struct{}, maxConcurrent), metrics: newMetrics(),
		// The client follows no redirects: the prompt and the key go only where the operator has sent them.
		client: guard.Client(egress.Limits{Timeout: c.Timeout, MaxResponse: maxAnswer}),
	}
}

// Configured reports whether there is a model; a nil provider has none.
func (p *Provider) Configured() bool { return p != nil && p.config.URL != "" && p.config.Model != "" }

// Model returns the name of the configured model; empty without one.
func (p *Provider) Model() string {
	if !p.Configured() {
		return ""
	}
	return p.config.Model
}

// Named reports whether name means this provider: the host of its URL ("api.openai.com"), or a label of the host
// ("openai") except the last. It ignores case.
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

// Question is a question to the model.
type Question struct {
	// System is the system prompt, Prompt the user's.
	System, Prompt string
	// Schema is the JSON Schema of the answer; nil accepts any text. References to other documents are rejected.
	Schema map[string]any
	// SchemaName is the schema's name at the provider: letters, digits, _ and -, at most 64; empty means "answer".
	SchemaName string
	// Model overrides the configured model.
	Model string
	// MaxTokens limits the answer; 0 means the model's own limit.
	MaxTokens int
}

// Answer is the model's answer.
type Answer struct {
	// JSON matches the schema; nil without a schema.
	JSON json.RawMessage
	// Text is the unchanged answer.
	Text string
	// Model is the provider's name of the model that answered.
	Model string
	// InputTokens and OutputTokens count all calls for the answer.
	InputTokens, OutputTokens int64
	// CostUSD is the cost of these tokens at the configured prices.
	CostUSD float64
}

// Ask asks one question. If the answer does not match the schema, it asks once more with the reason. The Answer has
// tokens and cost even with an error. Errors: ErrNotConfigured, the error of ctx, or one for IsPermanent.
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
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
	c := conversation{provider: p, question: q, answer: Answer{Model: q.Model}}
	err = c.run(ctx, schema)
	p.metrics.observe(c.answer, err)
	return c.answer, err
}

// countsCompletionTokens reports whether the API needs max_completion_tokens, the newer name of max_tokens.
// OpenAI's newer models reject the old name, and most other servers accept only the old one.
func (p *Provider) countsCompletionTokens() bool {
	u, err := url.Parse(p.config.URL)
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".openai.azure.com"))
}

// Describe implements prometheus.Collector.
func (p *Provider) Describe(ch chan<- *prometheus.Desc) { p.metrics.Describe(ch) }

// Collect implements prometheus.Collector.
func (p *Provider) Collect(ch chan<- prometheus.Metric) { p.metrics.Collect(ch) }
