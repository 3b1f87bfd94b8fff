package llm

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics have no labels with values from tenants.
type metrics struct {
	requests, tokens *prometheus.CounterVec
	cost             prometheus.Counter
}

func newMetrics() metrics {
	return metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palisade_model_requests_total", Help: "Questions to the model, by outcome (ok, retryable, permanent, cancelled).",
		}, []string{"outcome"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "palisade_model_tokens_total", Help: "Tokens that the model read (input) and wrote (output).",
		}, []string{"direction"}),
		cost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "palisade_model_cost_usd_total", Help: "What these tokens cost by the configured prices, in US dollars.",
		}),
	}
}

func (m metrics) observe(a Answer, err error) {
	outcome := "ok"
	switch {
	case errors.Is(err, context.Canceled):
		outcome = "cancelled"
	case IsPermanent(err):
		outcome = "permanent"
	case err != nil:
		outcome = "retryable"
	}
	m.requests.WithLabelValues(outcome).Inc()
	m.tokens.WithLabelValues("input").Add(float64(a.InputTokens))
	m.tokens.WithLabelValues("output").Add(float64(a.OutputTokens))
	m.cost.Add(a.CostUSD)
}

func (m metrics) Describe(ch chan<- *prometheus.Desc) {
	m.requests.Describe(ch)
	m.tokens.Describe(ch)
	m.cost.Describe(ch)
}

func (m metrics) Collect(ch chan<- prometheus.Metric) {
	m.requests.Collect(ch)
	m.tokens.Collect(ch)
	m.cost.Collect(ch)
}
