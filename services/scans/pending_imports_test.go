package scans_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/scans"
)

// importLock is the advisory lock that an import of the ref held waits for when it has written everything except the
// end of its scan.
const importLock = 4711

// holdImports makes imports of the ref held wait, as long as the returned connection has importLock.
func holdImports(t *testing.T, database string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // releases the lock before the server is stopped
	if _, err := conn.Exec(t.Context(), fmt.Sprintf(`CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM pg_advisory_xact_lock_shared(%d); RETURN NEW; END $$;
		CREATE TRIGGER hold BEFORE UPDATE ON scans FOR EACH ROW WHEN (NEW.ref = 'refs/heads/held') EXECUTE FUNCTION hold()`, importLock)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func takeImportLock(t *testing.T, conn *pgx.Conn, take bool) {
	t.Helper()
	call := map[bool]string{true: "pg_advisory_lock", false: "pg_advisory_unlock"}[take]
	if _, err := conn.Exec(t.Context(), fmt.Sprintf("SELECT %s(%d)", call, importLock)); err != nil {
		t.Fatal(err)
	}
}

// until waits until a query returns a number.
func until(t *testing.T, conn *pgx.Conn, query string, want int) {
	t.Helper()
	for got, deadline := -1, time.Now().Add(time.Minute); got != want; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), query).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is %d after a minute, want %d", query, got, want)
		}
	}
}

const (
	waitingImports = "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database WHERE datname = current_database() AND locktype = 'advisory' AND objid = 4711 AND NOT granted"
	announced      = "SELECT count(*) FROM pending_imports"
	allFindings    = "/api/v1/deployments/acme/findings"
)

var rulesShown = regexp.MustCompile(`"rule_name":"([^"]+)"`)

// shownRules are the rules of a list of findings in its order, each with its number of consecutive findings.
func shownRules(body string) string {
	var list []string
	last, n := "", 0
	for _, match := range append(rulesShown.FindAllStringSubmatch(body, -1), []string{"", ""}) {
		if match[1] != last && n > 0 {
			list, n = append(list, fmt.Sprintf("%d %s", n, last)), 0
		}
		last, n = match[1], n+1
	}
	return strings.Join(list, " ")
}

// severalResults are results of one rule.
func severalResults(rule string, n int) []result {
	list := make([]result, n)
	for i := range list {
		list[i] = result{Rule: rule, File: fmt.Sprintf("store/table%d.go", i), Code: fmt.Sprintf("db.Query(%q + name%d)", rule, i), Line: i + 1}
	}
	return list
}

// TestListsBesideALargeImport: lists skip the findings of an uncommitted import. They show findings that others store
// during the import, and the whole import after its commit.
func TestListsBesideALargeImport(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t)
	s, statements := apitest.StartRecorded(t, func(c *config.Config) { c.Database = database })
	other := apitest.Start(t, func(c *config.Config) { c.Database, c.Data = database, s.Config.Data })
	s.Upload(t, "acme/old", "main", sarifOf(t, run{Tool: "gosec", Results: severalResults("old", 150)}))
	s.Upload(t, "acme/new", "main", sarifOf(t, run{Tool: "gosec", Results: severalResults("new", 60)}))
	conn := holdImports(t, database)
	takeImportLock(t, conn, true)
	const large = 1200
	uploaded := make(chan struct{})
	go func() {
		defer close(uploaded)
		other.Upload(t, "acme/large", "held", sarifOf(t, run{Tool: "gosec", Results: severalResults("large", large)}))
	}()
	until(t, conn, waitingImports, 1)
	until(t, conn, announced, 1)
	want := func(query, rules string) {
		t.Helper()
		if got := shownRules(s.Get(t, allFindings+query)); got != rules {
			t.Errorf("%s: %s, want %s", query, got, rules)
		}
	}
	want("", "60 new 40 old") // by a node that does not know
	statements.Take(findingsv1.FindingsService_ListFindings_FullMethodName)
	want("", "60 new 40 old")
	bound := regexp.MustCompile(`"relevant_since" [<>] \$`)
	parts := 0
	for _, statement := range statements.Take(findingsv1.FindingsService_ListFindings_FullMethodName) {
		if bound.MatchString(statement.Text) {
			parts++
		}
	}
	if parts != 2 {
		t.Errorf("the list was read in %d parts around the import, want 2", parts)
	}
	s.Upload(t, "acme/young", "main", sarifOf(t, run{Tool: "gosec", Results: severalResults("young", 110)}))
	want("?status=open&page=1", "10 young 60 new 30 old") // not the next page
	want("", "100 young")
	want("?page=1", "10 young 60 new 30 old")
	want("?page=2", "100 old")
	want("?page=3", "20 old")
	want("?page=4", "")
	want("?page_size=3000", "110 young 60 new 150 old")

	takeImportLock(t, conn, false)
	<-uploaded
	until(t, conn, announced, 0)
	want("", "100 young")
	want("?page_size=3000", fmt.Sprintf("110 young %d large 60 new 150 old", large))
}

// TestGivenUpImportIsForgotten: an import that its caller cancels leaves neither findings nor its announcement.
func TestGivenUpImportIsForgotten(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t)
	s := apitest.Start(t, func(c *config.Config) { c.Database = database })
	s.Upload(t, "acme/old", "main", sarifOf(t, run{Tool: "gosec", Results: []result{{Rule: "old", File: "a.go", Code: "first()", Line: 1}}}))
	conn := holdImports(t, database)
	takeImportLock(t, conn, true)
	ctx, giveUp := context.WithCancel(t.Context())
	report := sarifOf(t, run{Tool: "gosec", Results: severalResults("new", 1200)})
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/deployments/acme/reports?project=acme/large&ref=held", bytes.NewReader(report))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	ended := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		ended <- err
	}()
	until(t, conn, waitingImports, 1)
	until(t, conn, announced, 1)
	if got := shownRules(s.Get(t, allFindings)); got != "1 old" {
		t.Errorf("during the import: %s", got)
	}
	// The announcement of an import on a dead node is deleted, the announcement of a running import is not.
	if _, err := conn.Exec(t.Context(), "INSERT INTO pending_imports (deployment_id, relevant_since) SELECT deployment_id, relevant_since - 1 FROM pending_imports"); err != nil {
		t.Fatal(err)
	}
	until(t, conn, announced, 2)
	for range 2 {
		if err := scans.DeletePendingImports(t.Context(), s.Store, time.Now()); err != nil {
			t.Fatal(err)
		}
		until(t, conn, announced, 1)
	}
	giveUp()
	if err := <-ended; err == nil {
		t.Error("the upload came to an end")
	}
	until(t, conn, waitingImports, 0)
	until(t, conn, announced, 0)
	for range 2 {
		if got := shownRules(s.Get(t, allFindings)); got != "1 old" {
			t.Errorf("after the import: %s", got)
		}
	}
}
