package server

import (
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// openSpool opens the directory for data that is too large for memory.
func openSpool(cfg config.Config, st *store.Store, metrics *telemetry.Metrics) (*spool.Spool, error) {
	node, deployment := cfg.SpoolQuotas()
	limits := spool.Limits{Node: int64(node), Deployment: int64(deployment), Disk: cfg.Disk(), Unmoved: st.Unmoved}
	files, err := spool.Open(cfg.SpoolDir(), limits, metrics.RateLimited.Inc)
	if err != nil {
		return nil, err
	}
	metrics.WatchDisk(files.Used, limits.Disk.Free)
	return files, nil
}
