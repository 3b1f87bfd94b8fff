package telemetry

import "github.com/prometheus/client_golang/prometheus"

// WatchModel exports the metrics of the language model provider: palisade_model_*.
func (m *Metrics) WatchModel(provider prometheus.Collector) { m.registry.MustRegister(provider) }
