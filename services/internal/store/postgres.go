package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"time"

	"entgo.io/ent/dialect"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// openPostgres opens one pool that serves reads and writes.
func openPostgres(ctx context.Context, o Options) (*Store, error) {
	config, err := pgx.ParseConfig(o.Database)
	if err != nil {
		// pgx's text may repeat the URL with its password.
		return nil, errors.New("database: not a PostgreSQL URL; want postgres://user:password@host:5432/name")
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "palisade"
	}
	db := stdlib.OpenDB(*config)
	connections := o.MaxOpen
	if connections == 0 {
		connections = max(10, 4*runtime.NumCPU())
	}
	connections = max(2, connections) // migrations hold a lock on one while they work on another
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(5 * time.Minute)
	location := (&url.URL{Scheme: "postgres", Host: fmt.Sprintf("%s:%d", config.Host, config.Port), Path: config.Database}).String()
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", location, err), db.Close())
	}
	return &Store{dialect: dialect.Postgres, readerDB: db, writerDB: db, location: location}, nil
}
