//go:build unix

package server_test

import (
	"fmt"
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
	"github.com/palisade/palisade/services/internal/testrun"
)

func init() { *server.ReportsCheckInterval = 200 * time.Millisecond }

// A PostgreSQL backend is killed, and all others with it. Failing requests get 503, and every acknowledged change is
// stored.
func TestKilledBackend(t *testing.T) {
	testrun.Deep(t) // fails databases over
	database := pgtest.NewCluster(t)
	o := newOutage(t, database)
	end := o.load()
	for range 3 {
		failed := o.writes(o.failed)
		pgtest.KillBackend(t, database, store.SessionName)
		o.wait("changes are refused", func() bool { return o.writes(o.failed) > failed }) // until the other backends have ended, too
		good := o.writes(o.good)
		o.wait("changes are made again", func() bool { return o.writes(o.good) > good+20 })
	}
	o.waitReady()
	end()
	o.afterCrashes()
}

// oneOf is a URL for whichever of the servers accepts writes.
func oneOf(t *testing.T, urls ...string) string {
	t.Helper()
	var hosts, ports []string
	var out *url.URL
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		hosts, ports, out = append(hosts, u.Hostname()), append(ports, u.Port()), u
	}
	out.Host = ""
	query := out.Query()
	query.Set("host", strings.Join(hosts, ","))
	query.Set("port", strings.Join(ports, ","))
	query.Set("target_session_attrs", "read-write")
	out.RawQuery = query.Encode()
	return out.String()
}

// The primary stops, its standby is promoted, and the old primary returns as a standby. A node that knows both
// continues with the new primary.
func TestFailover(t *testing.T) {
	testrun.Deep(t) // fails databases over
	primary := pgtest.NewCluster(t)
	standby := pgtest.NewStandby(t, primary)
	o := newOutage(t, oneOf(t, primary, standby.URL))
	end := o.load()
	o.wait("changes are made", func() bool { return o.writes(o.good) > 20 })
	standby.StopPrimary()
	o.wait("changes are refused", func() bool { return o.writes(o.failed) > 5 })
	o.wait("the node is not ready", func() bool { ok, _ := o.ready(); return !ok })
	standby.StartPrimaryAsStandby(primary)
	cfg := apitest.EmptyConfig(t)
	cfg.Database = primary
	if c := checkOf(t, cfg, "database writes"); c.OK || !strings.Contains(c.Detail, "standby") || !strings.Contains(c.Fix, "target_session_attrs=read-write") {
		t.Errorf("doctor on a standby says %+v", c)
	}
	standby.Promote()
	o.waitReady()
	good := o.writes(o.good)
	o.wait("changes are made again", func() bool { return o.writes(o.good) > good+20 })
	end()
	o.afterCrashes()
}

// When a node's only address leads to the demoted primary, the node refuses writes and is not ready. When the address
// leads to the new primary, no connection to the old one is used any more.
func TestConnectionsToADemotedServerAreReplaced(t *testing.T) {
	testrun.Deep(t) // fails databases over
	primary := pgtest.NewCluster(t)
	standby := pgtest.NewStandby(t, primary)
	through, to := newSwitch(t, primary)
	o := newOutage(t, through)
	standby.StopPrimary()
	standby.StartPrimaryAsStandby(primary)
	standby.Promote()
	var reason string
	o.wait("the node is not ready", func() (is bool) { is, reason = o.ready(); return !is && strings.Contains(reason, "read only") })
	for name, call := range o.calls() { // a standby has the findings, but not the unlogged tables
		if seen := call(0); seen != "" && seen != "503" {
			t.Errorf("%s on a standby: %s", name, seen)
		}
	}
	endReads := o.loadOf(func(name string) bool { return strings.HasPrefix(name, "read") })
	time.Sleep(100 * time.Millisecond) // connections to the old primary are in use when the first one reaches the new one
	to(standby.URL)                    // open connections stay where they are
	o.waitReady()
	endReads()
	end := o.load()
	o.wait("changes are made", func() bool { return o.writes(o.good) > 20 })
	end()
	if o.writes(o.failed) > 0 {
		t.Errorf("%d changes were refused by a node that says that it is ready", o.writes(o.failed))
	}
}

// follows waits until a standby has everything that is committed on its primary.
func follows(t *testing.T, primary, standby string) {
	t.Helper()
	ask := func(url, query string) (answer string) {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	position := ask(primary, "SELECT CAST(pg_current_wal_lsn() AS text)")
	apitest.Eventually(t, "the standby follows", func() bool {
		return ask(standby, "SELECT CAST(COALESCE(pg_last_wal_replay_lsn() >= '"+position+"', false) AS text)") == "true"
	})
}

// A promoted replica falls behind: reports are refused, and only reports.
func TestPromotedReportsReplica(t *testing.T) {
	testrun.Deep(t) // fails databases over
	primary := pgtest.NewCluster(t)
	standby := pgtest.NewStandby(t, primary)
	cfg := apitest.EmptyConfig(t)
	cfg.Database, cfg.BootstrapToken, cfg.KeyFile = primary, outageToken, filepath.Join(t.TempDir(), "palisade.key")
	first, _ := apitest.StartConfigured(t, cfg)
	uploadTo(t, first, outageToken, "a.go")
	follows(t, primary, standby.URL)
	cfg.ReportsDatabase = standby.URL
	s, out := apitest.StartConfigured(t, cfg)
	o := &outage{t: t, s: s, out: out}
	report := func() string { return reportOf(o) }
	o.wait("reports are read from a standby", func() bool { return report() == "" })
	if c := checkOf(t, cfg, "reports database"); !c.OK {
		t.Errorf("doctor says %+v", c)
	}
	standby.Promote()
	o.wait("reports are refused", func() bool { return report() == "503" })
	if answer := o.body(http.MethodPost, reportPath, reportRequest()); !strings.Contains(answer, "is no longer a replica of the database") {
		t.Errorf("the refusal says %s", answer)
	}
	if code, body := apitest.Get(t, http.DefaultClient, "http://"+s.Addresses().HTTP+"/readyz", ""); code != http.StatusOK {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if c := checkOf(t, cfg, "reports database"); c.OK || !strings.Contains(c.Detail, "promoted") {
		t.Errorf("doctor says %+v", c)
	}
	if !strings.Contains(out.String(), "was promoted") {
		t.Errorf("the log does not say it:\n%s", out)
	}
	later, _ := apitest.StartConfigured(t, cfg) // a restart gives the same result
	if seen := reportOf(&outage{t: t, s: later}); seen != "503" {
		t.Errorf("after a start: %s", seen)
	}
}

// An independent copy that something else keeps up to date serves reports when its role is read-only.
func TestReportsFromACopy(t *testing.T) {
	testrun.Deep(t) // fails databases over
	database, elsewhere := pgtest.NewDatabase(t), pgtest.NewCluster(t)
	cfg := apitest.EmptyConfig(t)
	cfg.Database, cfg.BootstrapToken, cfg.KeyFile = database, outageToken, filepath.Join(t.TempDir(), "palisade.key")
	first, _ := apitest.StartConfigured(t, cfg)
	uploadTo(t, first, outageToken, "a.go")
	pgtest.Dump(t, database, elsewhere)
	cfg.ReportsDatabase = elsewhere
	s, out := apitest.StartConfigured(t, cfg)
	o := &outage{t: t, s: s, out: out}
	if seen := reportOf(o); seen != "503" {
		t.Errorf("from a copy that may be changed: %s", seen)
	}
	if c := checkOf(t, cfg, "reports database"); c.OK || !strings.Contains(c.Detail, "ALTER ROLE") {
		t.Errorf("doctor says %+v", c)
	}
	apitest.OnDatabase(t, elsewhere, "ALTER ROLE palisade SET default_transaction_read_only = on", endSessions)
	o.wait("reports are read from it", func() bool { return reportOf(o) == "" })
	if c := checkOf(t, cfg, "reports database"); !c.OK {
		t.Errorf("doctor says %+v", c)
	}
}

const reportPath = "/api/reporting/1/reports/by-project/by-severity"

func reportRequest() string {
	return fmt.Sprintf(`{"filters":{"timePeriod":{"since":%q}}}`, time.Now().AddDate(0, 0, -7).UTC().Format(time.RFC3339))
}

func reportOf(o *outage) string { return o.do(http.MethodPost, reportPath, reportRequest()) }

// checkOf is the doctor's check of this name.
func checkOf(t *testing.T, cfg config.Config, name string) services.Check {
	t.Helper()
	for _, c := range services.Doctor(t.Context(), cfg) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q", name)
	return services.Check{}
}
