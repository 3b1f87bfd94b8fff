package services

import (
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// models is the language model that all domains ask; without one in the configuration it says which settings are missing.
func models(d deps) *llm.Provider { return d.model }

// openModel makes the provider of a server.
func openModel(cfg Config, guard *egress.Guard, metrics *telemetry.Metrics) *llm.Provider {
	provider := llm.New(llm.Config{
		URL: cfg.AIURL, Key: cfg.AIKey, Model: cfg.AIModel, Timeout: cfg.AITimeout,
		InputPrice: cfg.AIInputPrice, OutputPrice: cfg.AIOutputPrice,
	}, guard)
	metrics.WatchModel(provider)
	return provider
}
