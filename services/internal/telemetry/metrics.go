package telemetry

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are the metrics of one server. Their labels have bounded cardinality: RPC names, codes, products, pool and
// queue names; never tenants, users or addresses.
type Metrics struct {
	// GRPC counts calls by service, method and code (grpc_server_handled_total and the provider's other metrics). Its
	// histogram has no code label, hence RequestSeconds.
	GRPC *grpcprom.ServerMetrics
	// RequestSeconds observes the duration of calls by full method, code and transport (grpc, http).
	RequestSeconds *prometheus.HistogramVec
	// InFlight is the number of in-flight calls, by transport.
	InFlight *prometheus.GaugeVec
	// Panics counts the panics that were recovered.
	Panics prometheus.Counter
	// RateLimited counts calls that were refused with RATE_LIMITED.
	RateLimited prometheus.Counter
	// ConnectionsClosed counts connections that a limit of their address closed, by port and reason; see package
	// connlimit.
	ConnectionsClosed *prometheus.CounterVec
	// AuditFailures counts audit entries that were not written with their call, by reason:
	//
	//   - write: the database refused the entry.
	//   - later: the database could not take the entry; it is written as soon as possible.
	//   - throttled: a caller was denied too often for each attempt to be recorded.
	//   - unowned: the caller belongs to no deployment.
	//   - full: too many entries are pending, so the call was refused.
	AuditFailures *prometheus.CounterVec
	// FindingsIngested counts results of uploaded reports, by product and outcome (created, updated, unchanged,
	// reopened, fixed, skipped).
	FindingsIngested *prometheus.CounterVec
	// UnknownFields counts unknown JSON fields in request bodies.
	UnknownFields prometheus.Counter

	registry *prometheus.Registry
	log      *slog.Logger
}

// requestBuckets range from a cached read to the longest upload, in seconds.
var requestBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900}

// NewMetrics returns metrics in their own registry. version, revision and goVersion are labels of palisade_build_info.
// Failed scrapes are written to log.
func NewMetrics(log *slog.Logger, version, revision, goVersion string) *Metrics {
	m := &Metrics{
		GRPC: grpcprom.NewServerMetrics(),
		RequestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "palisade_request_duration_seconds",
			Help:    "Duration of calls in seconds, by RPC, gRPC code and transport.",
			Buckets: requestBuckets,
		}, []string{"method", "code", "transport"}),
		InFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "palisade_requests_in_flight",
			Help: "In-flight calls.",
		}, []string{"transport"}),
		Panics:      counter("palisade_panics_total", "Panics of handlers that were recovered."),
		RateLimited: counter("palisade_rate_limited_total", "Calls that were refused by a rate limit."),
		ConnectionsClosed: counterVec("palisade_connections_closed_total",
			"Connections that were closed because their address had too many, or too many abandoned calls.", "port", "reason"),
		AuditFailures:    counterVec("palisade_audit_failures_total", "Audit entries that were not written with their call.", "reason"),
		FindingsIngested: counterVec("palisade_findings_ingested_total", "Results of uploaded reports.", "product", "outcome"),
		UnknownFields:    counter("palisade_unknown_json_fields_total", "Unknown fields of JSON bodies, which were ignored."),
		registry:         prometheus.NewRegistry(),
		log:              log,
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "palisade_build_info",
		Help:        "Always 1; the labels say what is running.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "go_version": goVersion},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.GRPC, m.RequestSeconds, m.InFlight, m.Panics, m.RateLimited, m.ConnectionsClosed, m.AuditFailures, m.FindingsIngested, m.UnknownFields,
		build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// WatchPools exports the statistics of database connection pools as go_sql_*{db_name="<name>"}.
func (m *Metrics) WatchPools(pools map[string]*sql.DB) {
	for name, db := range pools {
		m.registry.MustRegister(collectors.NewDBStatsCollector(db, name))
	}
}

// WatchTransactions exports how many transactions wait for a connection as palisade_db_transactions_waiting.
func (m *Metrics) WatchTransactions(waiting func() int64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "palisade_db_transactions_waiting", Help: "Transactions that wait for a connection to PostgreSQL: see db-max-open.",
	}, func() float64 { return float64(waiting()) }))
}

// WatchDisk exports the disk usage of uploads as palisade_spool_bytes, and the free space of the data directory, if
// known, as palisade_disk_free_bytes.
func (m *Metrics) WatchDisk(used func() int64, free func() (bytes int64, known bool)) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "palisade_spool_bytes", Help: "Bytes that uploads use on disk: see spool-quota.",
	}, func() float64 { return float64(used()) }))
	if _, known := free(); !known {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "palisade_disk_free_bytes", Help: "Free bytes on the disk of the data directory: see disk-reserve.",
	}, func() float64 { bytes, _ := free(); return float64(bytes) }))
}

// queueTimeout limits the query of a scrape. Prometheus gives up after ten seconds by default.
const queueTimeout = 2 * time.Second

// WatchQueue exports the number of waiting jobs in each queue as palisade_queue_depth{queue="<name>"}. Each scrape
// calls depth. When depth fails, the scrape continues without the gauge.
func (m *Metrics) WatchQueue(depth func(context.Context) (map[string]int64, error)) {
	m.registry.MustRegister(queueCollector{depth: depth, log: m.log})
}

type queueCollector struct {
	depth func(context.Context) (map[string]int64, error)
	log   *slog.Logger
}

var queueDesc = prometheus.NewDesc("palisade_queue_depth", "Waiting background jobs, counted up to 10000 per queue and state.", []string{"queue"}, nil)

// Describe sends the descriptor of the gauge.
func (c queueCollector) Describe(ch chan<- *prometheus.Desc) { ch <- queueDesc }

// Collect reads the depth.
func (c queueCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueTimeout)
	defer cancel()
	queues, err := c.depth(ctx)
	if err != nil {
		c.log.Error("queue depth cannot be read", "error", err)
		return
	}
	for name, n := range queues {
		ch <- prometheus.MustNewConstMetric(queueDesc, prometheus.GaugeValue, float64(n), name)
	}
}

// Handler serves the metrics in the Prometheus and OpenMetrics formats.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:          slog.NewLogLogger(m.log.Handler(), slog.LevelError),
		ErrorHandling:     promhttp.ContinueOnError,
		EnableOpenMetrics: true,
	})
}

// Gatherer returns the registry for reading.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }
