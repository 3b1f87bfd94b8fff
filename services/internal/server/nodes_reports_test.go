package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/store"
)

// frozenReplica copies a database without connections. The copy refuses writes, as a hot standby does, and gets no more
// changes.
func frozenReplica(t *testing.T, database string) string {
	t.Helper()
	replica := pgtest.NewDatabase(t)
	name := func(text string) string {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return pgx.Identifier{strings.Trim(u.Path, "/")}.Sanitize()
	}
	administration, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	administration.Path = "/postgres"
	apitest.OnDatabase(t, administration.String(), "DROP DATABASE "+name(replica),
		"CREATE DATABASE "+name(replica)+" TEMPLATE "+name(database),
		"ALTER DATABASE "+name(replica)+" SET default_transaction_read_only = on")
	return replica
}

// uploadTo stores a report of one finding.
func uploadTo(t *testing.T, s *server.Server, token, file string) {
	t.Helper()
	body := fmt.Sprintf(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec"}},"results":[{"ruleId":"go.sqli","level":"error","message":{"text":"x"},
		"locations":[{"physicalLocation":{"artifactLocation":{"uri":%q},"region":{"startLine":1}}}]}]}]}`, file)
	query := url.Values{"project": {"acme/" + file}, "ref": {"main"}}
	post(t, "http://"+s.Addresses().HTTP+"/api/v1/deployments/default/reports?"+query.Encode(), token, body)
}

// Reports come from the replica with its lag, everything else from the main database.
func TestReportsDatabase(t *testing.T) {
	database, key := pgtest.NewDatabase(t), filepath.Join(t.TempDir(), "palisade.key")
	config := func(reports string) config.Config {
		cfg := apitest.EmptyConfig(t)
		cfg.Database, cfg.KeyFile, cfg.ReportsDatabase, cfg.BootstrapToken = database, key, reports, "sgp_reports4Kq2vXw7RbZ4mLd8sYh3nPc6JfGa"
		return cfg
	}
	first, err := services.Start(t.Context(), config(""), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	token := config("").BootstrapToken
	uploadTo(t, first, token, "a.go")
	first.Stop()
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	replica := frozenReplica(t, database)

	s, _ := apitest.StartConfigured(t, config(replica))
	base := "http://" + s.Addresses().HTTP
	uploadTo(t, s, token, "b.go")
	if code, body := apitest.Get(t, http.DefaultClient, base+"/api/v1/deployments/default/findings", token); code != http.StatusOK ||
		!strings.Contains(body, `"a.go"`) || !strings.Contains(body, `"b.go"`) {
		t.Errorf("findings: %d %s", code, body)
	}
	body := post(t, base+"/api/reporting/1/reports/by-project/by-severity", token,
		`{"filters":{"timePeriod":{"since":"`+time.Now().AddDate(0, 0, -7).UTC().Format(time.RFC3339)+`"}}}`)
	if !strings.Contains(body, "acme/a.go") || strings.Contains(body, "acme/b.go") {
		t.Errorf("the report: %s, want what the replica has: acme/a.go alone", body)
	}
	_, metrics := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().Metrics+"/metrics", "")
	if !strings.Contains(metrics, `go_sql_open_connections{db_name="reports"}`) {
		t.Error("the pool of the replica is not in the metrics")
	}
}

// A replica that lacks migrations or belongs to another installation stops the start.
func TestReportsDatabaseIsRefused(t *testing.T) {
	key := filepath.Join(t.TempDir(), "palisade.key")
	config := func(database, reports string) config.Config {
		cfg := apitest.EmptyConfig(t)
		cfg.Database, cfg.KeyFile, cfg.ReportsDatabase = database, key, reports
		return cfg
	}
	database, other := pgtest.NewDatabase(t), pgtest.NewDatabase(t)
	for _, url := range []string{database, other} { // two installations with one key
		s, err := services.Start(t.Context(), config(url, ""), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		s.Stop()
		if err := s.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	behind := frozenReplica(t, database)
	apitest.OnDatabase(t, behind, "SET default_transaction_read_only = off",
		"DELETE FROM goose_db_version WHERE version_id = (SELECT MAX(version_id) FROM goose_db_version)")
	for what, c := range map[string]struct{ reports, want string }{
		"lacks a migration": {behind, store.ErrReplicaBehind.Error()},
		"is empty":          {pgtest.NewDatabase(t), store.ErrReplicaBehind.Error()},
		"is another's":      {other, "is the database of another installation, not a replica of"},
		"does not exist":    {strings.Replace(database, "?", "_gone?", 1), "does not exist"},
	} {
		_, err := services.Start(t.Context(), config(database, c.reports), io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), "reports-database: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a replica that %s: %v, want %q", what, err, c.want)
		}
	}
	cfg := config("", "postgres://h/d")
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "reports-database: is set, but database is not") {
		t.Errorf("with SQLite: %v", err)
	}
}
