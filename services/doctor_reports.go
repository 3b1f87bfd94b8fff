package services

import (
	"context"
	"errors"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// checkReports checks that the database of reports is a replica of the main database.
func checkReports(ctx context.Context, cfg config.Config, main *store.Store) []Check {
	const name = "reports database"
	if cfg.ReportsDatabase == "" || !main.Postgres() {
		return nil
	}
	replica, err := main.OpenReplica(ctx, store.Options{Database: cfg.ReportsDatabase, MaxOpen: 2})
	if err != nil {
		return []Check{failed(name, err.Error(), "correct --reports-database")}
	}
	defer func() { _ = replica.Close() }() // nothing was written
	err = server.CheckReplica(ctx, replica, main)
	switch {
	case err == nil:
		return []Check{passed(name, replica.Location()+" is a replica of the database")}
	case errors.Is(err, store.ErrNoReplica):
		return []Check{failed(name, err.Error(), "name a standby of the database with --reports-database, or leave it out: reports are refused until then")}
	case errors.Is(err, store.ErrReplicaBehind):
		return []Check{failed(name, err.Error(), "wait until it has caught up")}
	case server.Unreachable(err):
		return []Check{failed(name, err.Error(), "start it, or leave out --reports-database: reports are refused until then")}
	}
	return []Check{failed(name, err.Error(), "correct --reports-database: its user, its password and its name")}
}
