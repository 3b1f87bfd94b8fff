package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/dbcopy"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// A copy detects a server that has been idle until its connections were closed.
func TestCopySeesIdleServer(t *testing.T) {
	defer func(before time.Duration) { *server.SessionInterval = before }(*server.SessionInterval)
	*server.SessionInterval = 10 * time.Millisecond
	cfg := apitest.EmptyConfig(t)
	cfg.Database, cfg.Roles = pgtest.NewDatabase(t), config.RoleAPI
	apitest.StartConfigured(t, cfg)
	apitest.OnDatabase(t, cfg.Database, `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
		WHERE datname = current_database() AND starts_with(application_name, '`+store.SessionName+`')`)
	conn, err := pgx.Connect(t.Context(), cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	sessions := 0
	for deadline := time.Now().Add(5 * time.Minute); sessions == 0; <-time.After(10 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
			WHERE datname = current_database() AND starts_with(application_name, $1)`, store.SessionName).Scan(&sessions); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the server runs and has no session")
		}
	}
	request := services.CopyRequest{From: cfg.Database, To: "sqlite:" + t.TempDir()}
	if _, err := services.CopyDatabase(t.Context(), config.Config{KeyFile: cfg.KeyPath()}, request, func(string, int64, int64) {}); !errors.Is(err, dbcopy.ErrInUse) {
		t.Errorf("a copy while the server runs: %v", err)
	}
}
