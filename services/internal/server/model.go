package server

import (
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// openModel creates the model provider of all domains. Without a configured model it returns errors that name the
// missing settings.
func openModel(cfg config.Config, guard *egress.Guard, metrics *telemetry.Metrics) *llm.Provider {
	provider := llm.New(llm.Config{
		URL: cfg.AIURL, Key: cfg.AIKey, Model: cfg.AIModel, Timeout: cfg.AITimeout,
		InputPrice: cfg.AIInputPrice, OutputPrice: cfg.AIOutputPrice,
	}, guard)
	metrics.WatchModel(provider)
	return provider
}
