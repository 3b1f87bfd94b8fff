package telemetry

import "github.com/prometheus/client_golang/prometheus"

// WatchModel exports what the provider of the language model counts: palisade_model_*.
func (m *Metrics) WatchModel(provider prometheus.Collector) { m.registry.MustRegister(provider) }
