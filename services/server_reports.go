package services

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/telemetry"
)

// sealedCheck is the setting that no two installations have the same value of: what is sealed when the key is first used.
const sealedCheck = "key_check"

// openReports opens the database that reports are read from: the replica in the configuration, else the main one.
func (s *Server) openReports(ctx context.Context, main *store.Store, metrics *telemetry.Metrics) (*store.Store, error) {
	if s.config.ReportsDatabase == "" {
		return main, nil
	}
	replica, err := main.OpenReplica(ctx, store.Options{Database: s.config.ReportsDatabase, MaxOpen: s.config.DBMaxOpen})
	if err != nil {
		return nil, fmt.Errorf("reports-database: %w", err)
	}
	s.onClose("reports database", func(context.Context) error { return replica.Close() })
	// Ids are the same in every installation: reports from the database of another would show one tenant's numbers to the other.
	here, err := readSealedCheck(ctx, main)
	if err != nil {
		return nil, err
	}
	there, err := readSealedCheck(ctx, replica)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reports-database: %w", err)
	case len(there) == 0:
		return nil, fmt.Errorf("reports-database: %w", store.ErrReplicaBehind)
	case !bytes.Equal(here, there):
		return nil, errors.New("reports-database: " + replica.Location() + " is the database of another installation, not a replica of " +
			main.Location() + ": name a replica of it, or remove the key to read reports from database itself")
	}
	reader, _ := replica.DB()
	metrics.WatchPools(map[string]*sql.DB{"reports": reader})
	return replica, nil
}

func readSealedCheck(ctx context.Context, st *store.Store) ([]byte, error) {
	row, err := st.Reader.Setting.Query().Where(setting.Name(sealedCheck)).Only(tenant.System(ctx))
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the mark of the installation: %w", err)
	}
	return row.Value, nil
}
