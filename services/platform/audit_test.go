package platform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/column"
	"github.com/palisade/palisade/ent/tenant"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

const report = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","version":"2.21"}},"results":[
	{"ruleId":"G104","message":{"text":"Errors unhandled"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.go"},"region":{"startLine":3,"snippet":{"text":"f()"}}}}]}]}]}`

// trail is an answer with entries.
type trail struct {
	Entries []struct {
		ID, Sequence, Method, Code, RequestID, Hash, PreviousHash string
		Actor                                                     struct{ Kind, ID, Name, UserID string }
		Changes                                                   []struct {
			Kind, ID      string
			Before, After map[string]any
		}
	}
	Cursor string
}

func entriesPath(of apitest.Tenant, query ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	return fmt.Sprintf("/api/audit/v1/deployments/%d/entries?%s", of.DeploymentID, values.Encode())
}

func list(t *testing.T, s *apitest.Server, query ...string) (out trail) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.Get(t, entriesPath(s.Tenant, query...))), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// changing matches values that differ between runs: hashes and request ids.
var changing = regexp.MustCompile(`"(previousHash|hash|requestId)":"[^"]+"`)

func TestAuditGolden(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", []byte(report))
		const project = "/api/v1/deployments/acme/projects/acme/web"
		for _, call := range []struct{ method, path, body string }{
			{http.MethodPatch, project, `{"primary_branch":"dev","tags":["a"]}`},
			{http.MethodPost, "/api/v1/deployments/acme/triage", `{"issue_type":"sast","new_triage_state":"ignored","new_note":"by <us>"}`},
			{http.MethodDelete, project, ""},
			{http.MethodDelete, project, ""},
		} {
			s.Do(t, s.Token, call.method, call.path, call.body)
		}
		body := s.Get(t, entriesPath(s.Tenant))
		apitest.Golden(t, "audit_entries", changing.ReplaceAllString(body, `"$1":"X"`))
		client := platformv1.NewAuditServiceClient(s.Conn)
		response, err := client.ListAuditEntries(s.Context(t, s.Token), &platformv1.ListAuditEntriesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, response, body)
		entries := list(t, s).Entries
		for i, e := range entries {
			if len(e.Hash) != 64 || i > 0 && entries[i-1].PreviousHash != e.Hash {
				t.Errorf("entry %s does not follow the one before", e.Sequence)
			}
		}
	})
}

func TestAuditBelongsToAdministrators(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		other := s.AddTenant(t, "globex")
		s.Upload(t, "acme/web", "main", []byte(report))
		for credential, want := range map[string]int{
			"":          http.StatusUnauthorized,
			other.Token: http.StatusNotFound,
			s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember}): http.StatusForbidden,
		} {
			if answer := s.Do(t, credential, http.MethodGet, entriesPath(s.Tenant), ""); answer.Status != want {
				t.Errorf("got %d %s, want %d", answer.Status, answer.Body, want)
			}
		}
		if answer := s.Do(t, other.Token, http.MethodGet, entriesPath(other), ""); answer.Status != http.StatusOK || strings.Contains(answer.Body, "acme/web") {
			t.Errorf("another deployment sees %d %s", answer.Status, answer.Body)
		}
		if n := len(list(t, s).Entries); n != 1 {
			t.Errorf("%d entries, want 1: reading the trail is not part of it", n)
		}
	})
}

// addEntries inserts entries from before the chain existed, one per second from the beginning of 2026, and starts the
// trail after them.
func addEntries(t *testing.T, s *apitest.Server, n int, adjust func(i int, c *ent.AuditEntryCreate)) {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		for done := 0; done < n; {
			var rows []*ent.AuditEntryCreate
			for ; len(rows) < 500 && done < n; done++ {
				row := tx.AuditEntry.Create().SetActorKind("token").SetActorID(7).SetActorName("ci").SetMethod("/palisade.test.v1.TestService/ChangeThing").SetCode("OK").
					SetRequest("{}").SetRequestID(fmt.Sprintf("request-%d", done)).SetRemote("192.0.2.1").SetAt(store.Micros(start.Add(time.Duration(done) * time.Second)))
				adjust(done, row)
				rows = append(rows, row)
			}
			if err := tx.AuditEntry.CreateBulk(rows...).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	adopt(t, s)
}

// adopt makes the existing entries the ones from before the trail began.
func adopt(t *testing.T, s *apitest.Server) {
	t.Helper()
	execute(t, s, "DELETE FROM audit_heads")
	keyring, err := secret.Open(s.Config.KeyPath(), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := audit.Establish(t.Context(), s.Store, keyring, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
}

func execute(t *testing.T, s *apitest.Server, statement string) {
	t.Helper()
	_, writer := s.Store.DB()
	if _, err := writer.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestAuditWithholdsForgedEntries: entries that the server did not write are not returned over HTTP or gRPC, and are
// counted.
func TestAuditWithholdsForgedEntries(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		for _, name := range []string{"acme/a", "acme/b", "acme/c"} {
			s.Upload(t, name, "main", []byte(report))
		}
		const columns = "deployment_id, sequence, actor_kind, actor_id, method, code, request, request_id, remote, at"
		count := func(want, withheld int) {
			t.Helper()
			client := platformv1.NewAuditServiceClient(s.Conn)
			response, err := client.ListAuditEntries(s.Context(t, s.Token), &platformv1.ListAuditEntriesRequest{DeploymentId: s.DeploymentID})
			if err != nil {
				t.Fatal(err)
			}
			body := s.Get(t, entriesPath(s.Tenant))
			apitest.Same(t, response, body)
			if len(response.GetEntries()) != want || int(response.GetWithheld()) != withheld {
				t.Errorf("%d entries and %d withheld, want %d and %d", len(response.GetEntries()), response.GetWithheld(), want, withheld)
			}
			if (withheld > 0) != strings.Contains(body, `"withheld":`) || strings.Contains(body, "forged") {
				t.Errorf("got %s", body)
			}
		}
		count(3, 0)
		execute(t, s, fmt.Sprintf("INSERT INTO audit_entries (%s) VALUES (%d, 0, 'user', 1, '/forged', 'OK', '{}', 'r', '', 1)", columns, s.DeploymentID))
		count(3, 1)
		execute(t, s, fmt.Sprintf("INSERT INTO audit_entries (%s) VALUES (%d, 4, 'user', 1, '/forged', 'OK', '{}', 'r', '', 1)", columns, s.DeploymentID))
		count(3, 2)
		execute(t, s, "UPDATE audit_entries SET actor_name = 'forged' WHERE sequence = 2")
		count(2, 3)
		execute(t, s, "UPDATE audit_entries SET sequence = 0")
		execute(t, s, "DELETE FROM audit_heads")
		count(0, 5)
	})
}

func TestAuditFilters(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		addEntries(t, s, 4, func(i int, c *ent.AuditEntryCreate) {
			switch i {
			case 1:
				c.SetActorKind("user").SetActorID(3).SetActorName("ada@acme.test").SetCode("NotFound")
			case 2:
				c.SetActorKind("job").SetActorID(7).SetActorName("sync").SetMethod("sync").
					SetChanges([]column.AuditChange{{Kind: "tag", ID: "1"}, {Kind: "project", ID: "10", After: json.RawMessage(`{"a":1}`)}})
			case 3:
				// The requested object is only a part of another one.
				c.SetChanges([]column.AuditChange{{Kind: "team", ID: "<5>", After: json.RawMessage(`{"x":{"kind":"project","id":"10"}}`)}})
			}
		})
		for _, c := range []struct {
			query []string
			want  string // numbers of the requests, newest first
		}{
			{nil, "3 2 1 0"},
			{[]string{"actor", "token"}, "3 0"},
			{[]string{"actor", "token:7"}, "3 0"},
			{[]string{"actor", "token:3"}, ""},
			{[]string{"actor", "user:3"}, "1"},
			{[]string{"actor", "ada@acme.test"}, "1"},
			{[]string{"actor", "sync"}, "2"},
			{[]string{"actor", "job"}, "2"},
			{[]string{"actor", "user:x"}, ""},
			{[]string{"method", "ChangeThing"}, "3 1 0"},
			{[]string{"method", "/palisade.test.v1.TestService/ChangeThing"}, "3 1 0"},
			{[]string{"method", "Thing"}, ""},
			{[]string{"method", "%"}, ""},
			{[]string{"method", "sync"}, "2"},
			{[]string{"code", "NotFound"}, "1"},
			{[]string{"requestId", "request-2"}, "2"},
			{[]string{"objectKind", "project"}, "2"},
			{[]string{"objectKind", "project", "objectId", "10"}, "2"},
			{[]string{"objectKind", "project", "objectId", "1"}, ""},
			{[]string{"objectKind", "tag"}, "2"},
			{[]string{"objectKind", "team", "objectId", "<5>"}, "3"},
			{[]string{"since", "2026-01-01T00:00:01Z"}, "3 2 1"},
			{[]string{"until", "2026-01-01T00:00:02Z"}, "1 0"},
			{[]string{"since", "2026-01-01T00:00:01Z", "until", "2026-01-01T00:00:03Z", "code", "OK"}, "2"},
			{[]string{"since", "2030-01-01T00:00:00Z"}, ""},
		} {
			var got []string
			for _, e := range list(t, s, c.query...).Entries {
				got = append(got, strings.TrimPrefix(e.RequestID, "request-"))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%v: got %v, want %s", c.query, got, c.want)
			}
		}
	})
}

func TestAuditPages(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		const n = 45_000 // more than two windows
		addEntries(t, s, n, func(i int, c *ent.AuditEntryCreate) {
			if i%20_000 == 7 {
				c.SetCode("Aborted")
			}
		})
		walk := func(query ...string) (ids []string, pages int) {
			t.Helper()
			cursor := ""
			for {
				page := list(t, s, append(query, "cursor", cursor)...)
				pages++
				for _, e := range page.Entries {
					ids = append(ids, e.RequestID)
				}
				if cursor = page.Cursor; cursor == "" {
					return ids, pages
				}
			}
		}
		if ids, pages := walk("limit", "1000"); len(ids) != n || pages != n/1000 || ids[0] != fmt.Sprintf("request-%d", n-1) || ids[n-1] != "request-0" {
			t.Errorf("%d entries on %d pages, from %s to %s", len(ids), pages, ids[0], ids[len(ids)-1])
		} else if slices.Sort(ids); len(slices.Compact(ids)) != n {
			t.Error("an entry came twice")
		}
		if ids, pages := walk("code", "Aborted"); !slices.Equal(ids, []string{"request-40007", "request-20007", "request-7"}) || pages != 3 {
			t.Errorf("rare entries: got %v on %d pages", ids, pages)
		}
		if ids, pages := walk("code", "Aborted", "limit", "1"); len(ids) != 3 || pages > 4 {
			t.Errorf("rare entries, one a page: got %v on %d pages", ids, pages)
		}
		if ids, pages := walk("code", "DataLoss"); len(ids) != 0 || pages != 3 {
			t.Errorf("no entries: got %v on %d pages", ids, pages)
		}
		if ids, pages := walk("requestId", "request-3"); len(ids) != 1 || pages != 1 {
			t.Errorf("by request: got %v on %d pages", ids, pages)
		}
		cursor := list(t, s, "limit", "1").Cursor
		if answer := s.Do(t, s.Token, http.MethodGet, entriesPath(s.Tenant, "code", "OK", "cursor", cursor), ""); answer.Status != 400 || !strings.Contains(answer.Body, "INVALID_CURSOR") {
			t.Errorf("the cursor of another filter: %d %s", answer.Status, answer.Body)
		}
	})
}

func TestAuditRefusesBadFilters(t *testing.T) {
	s := apitest.Start(t, nil)
	for _, query := range [][]string{
		{"limit", "0"}, {"limit", "1001"}, {"limit", "x"}, {"cursor", "x"}, {"since", "yesterday"}, {"code", "Fine"},
		{"objectId", "7"}, {"objectKind", "Project"}, {"actor", strings.Repeat("x", 256)}, {"requestId", strings.Repeat("x", 129)},
	} {
		if answer := s.Do(t, s.Token, http.MethodGet, entriesPath(s.Tenant, query...), ""); answer.Status != 400 {
			t.Errorf("%v: %d %s", query, answer.Status, answer.Body)
		}
	}
}

// TestAuditListUsesItsIndexes checks the query plans of a page.
func TestAuditListUsesItsIndexes(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		addEntries(t, s, 5000, func(int, *ent.AuditEntryCreate) {})
		s.RefreshStatistics(t)
		for query, index := range map[string]string{
			"deployment_id = 1 AND (at, id) < (1767230100000000, 4500) ORDER BY at DESC, id DESC LIMIT 101": "audit_entries_by_time",
			"deployment_id = 1 AND request_id = 'request-70' ORDER BY at DESC, id DESC LIMIT 101":           "audit_entries_by_request",
			"deployment_id = 1 AND sequence > 0 AND sequence > 7 ORDER BY sequence LIMIT 500":               "audit_entries_chain",
		} {
			plan := explain(t, s, "SELECT * FROM "+auditentry.Table+" WHERE "+query)
			if !strings.Contains(plan, index) || strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "Sort") {
				t.Errorf("%s\nis read with %s\nwant %s", query, plan, index)
			}
		}
	})
}

func explain(t *testing.T, s *apitest.Server, query string) string {
	t.Helper()
	prefix := "EXPLAIN QUERY PLAN "
	if s.Store.Postgres() {
		prefix = "EXPLAIN "
	}
	reader, _ := s.Store.DB()
	rows, err := reader.QueryContext(t.Context(), prefix+query)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var plan strings.Builder
	for rows.Next() {
		values := make([]entsql.NullString, len(columns))
		targets := make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(values[len(values)-1].String + "\n")
	}
	return plan.String()
}
