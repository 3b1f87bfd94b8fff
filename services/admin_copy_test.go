package services_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
)

// TestMoveToPostgresAndBack moves a server's database twice. Callers see no difference, and new rows after each move
// get new ids.
func TestMoveToPostgresAndBack(t *testing.T) {
	report, err := os.ReadFile("../cmd/palisade/testdata/gosec-pocketbase.sarif")
	if err != nil {
		t.Fatal(err)
	}
	home, database, back := t.TempDir(), pgtest.NewDatabase(t), t.TempDir()
	key := filepath.Join(home, "palisade.key")
	paths := []string{"/api/v1/deployments/acme/findings?page_size=100", "/api/v1/deployments", "/api/v1/deployments/acme/projects"}
	var before []string
	answers := func(t *testing.T, s *apitest.Server) (out []string) {
		for _, path := range paths {
			out = append(out, s.Get(t, path))
		}
		return out
	}
	t.Run("sqlite", func(t *testing.T) {
		s := apitest.Start(t, func(c *config.Config) { c.Data = home })
		s.Upload(t, "pocketbase", "main", report)
		triage := `{"issue_type":"sast","rules":["G104"],"new_triage_state":"ignored","new_triage_reason":"no_time","new_note":"später"}`
		if answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", triage); answer.Status != http.StatusOK {
			t.Fatalf("triage: %d %s", answer.Status, answer.Body)
		}
		before = answers(t, s)
	})
	there := mustCopy(t, config.Config{}, services.CopyRequest{From: "sqlite:" + home, To: database, RequeueJobs: true})
	t.Run("postgres", func(t *testing.T) {
		s := apitest.Start(t, func(c *config.Config) { c.Data, c.Database, c.KeyFile = t.TempDir(), database, key })
		if after := answers(t, s); !slices.Equal(before, after) {
			t.Errorf("before\n%.2000s\nafter\n%.2000s", before, after)
		}
		wantParts(t, s.Upload(t, "pocketbase", "main", report), `"created":0`, `"unchanged":309`)
		wantParts(t, s.Upload(t, "other", "main", report), `"created":309`)
		wantWholeAudit(t, s.Config)
		wantEntry(t, s, "migrate.copy", 1)
		before = answers(t, s)
	})
	if there.KeyFile != key {
		t.Errorf("the key file is %s, want %s", there.KeyFile, key)
	}
	mustCopy(t, config.Config{KeyFile: key}, services.CopyRequest{From: database, To: "sqlite:" + back, RequeueJobs: true})
	t.Run("sqlite again", func(t *testing.T) {
		s := apitest.Start(t, func(c *config.Config) { c.Data, c.KeyFile = back, key })
		if after := answers(t, s); !slices.Equal(before, after) {
			t.Errorf("before\n%.2000s\nafter\n%.2000s", before, after)
		}
		wantParts(t, s.Upload(t, "third", "main", report), `"created":309`)
		wantWholeAudit(t, s.Config)
		wantEntry(t, s, "migrate.copy", 2)
	})
}

func mustCopy(t *testing.T, cfg config.Config, req services.CopyRequest) services.CopyReport {
	t.Helper()
	cfg.Data = t.TempDir()
	var report services.CopyReport
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var err error
		report, err = services.CopyDatabase(t.Context(), cfg, req, func(string, int64, int64) {})
		if err == nil {
			break
		}
		// PostgreSQL needs a moment to notice that the connections of a server have ended.
		if !strings.Contains(err.Error(), "is in use") || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for _, table := range report.Tables {
		if !table.OK {
			t.Errorf("%+v", table)
		}
	}
	if !report.OK {
		t.Fatal("the copy is not the same")
	}
	return report
}

// wantEntry requires this many entries of a command in the trail of the first deployment.
func wantEntry(t *testing.T, s *apitest.Server, method string, want int) {
	t.Helper()
	got := s.Store.Reader.AuditEntry.Query().Where(auditentry.Method(method), auditentry.ActorKind("operator")).CountX(s.System(t))
	if got != want {
		t.Errorf("%d entries of %s, want %d", got, method, want)
	}
}

func wantWholeAudit(t *testing.T, cfg config.Config) {
	t.Helper()
	entries := int64(0)
	err := services.VerifyAudit(t.Context(), cfg, "", services.KnownAudit{}, func(string, int64) {}, func(r services.AuditReport) error {
		entries += r.Entries
		if len(r.Broken) > 0 {
			t.Errorf("audit trail of %s: %s", r.Deployment, r.Broken)
		}
		return nil
	})
	if err != nil || entries == 0 {
		t.Errorf("%d audit entries, %v", entries, err)
	}
}

func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("missing %q in: %s", part, text)
		}
	}
}

// A copy is rejected while a server uses either database.
func TestCopyRefusesRunningServers(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		from, to := "sqlite:"+s.Config.Data, pgtest.NewDatabase(t)
		if s.Config.Database != "" {
			from, to = s.Config.Database, "sqlite:"+t.TempDir()
		}
		cfg := config.Config{KeyFile: s.Config.KeyPath(), Data: s.Config.Data}
		_, err := services.CopyDatabase(t.Context(), cfg, services.CopyRequest{From: from, To: to}, func(string, int64, int64) {})
		if err == nil {
			t.Fatal("it was copied")
		}
		wantParts(t, err.Error(), "in use", "stop")
	})
}

// TestCopySeesServersOfAnyName: a server is detected even if the URL gives its sessions another application name.
func TestCopySeesServersOfAnyName(t *testing.T) {
	database := pgtest.NewDatabase(t)
	s := apitest.Start(t, func(c *config.Config) { c.Database = database + "&application_name=orders" })
	_, err := services.CopyDatabase(t.Context(), s.Config, services.CopyRequest{From: database, To: "sqlite:" + t.TempDir()}, func(string, int64, int64) {})
	if err == nil {
		t.Fatal("it was copied")
	}
	wantParts(t, err.Error(), "in use", "stop every server")
}

// TestHalfCopy: neither servers nor commands work on the target of an unfinished copy.
func TestHalfCopy(t *testing.T) {
	home, database, back := t.TempDir(), pgtest.NewDatabase(t), t.TempDir()
	var cfg config.Config
	t.Run("source", func(t *testing.T) { cfg = apitest.Start(t, func(c *config.Config) { c.Data = home }).Config })
	for _, step := range []struct {
		name, from, to string
		target         config.Config
	}{
		{"to PostgreSQL", "sqlite:" + home, database, config.Config{Data: t.TempDir(), Database: database}},
		{"to SQLite", database, "sqlite:" + back, config.Config{Data: back}},
	} {
		t.Run(step.name, func(t *testing.T) {
			half := cfg
			half.Data, half.Database, half.KeyFile = step.target.Data, step.target.Database, cfg.KeyPath()
			request := services.CopyRequest{From: step.from, To: step.to, RequeueJobs: true}
			var err error
			apitest.Eventually(t, "PostgreSQL sees that the server before has ended", func() bool {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				_, err = services.CopyDatabase(ctx, half, request, func(string, int64, int64) { cancel() })
				return err == nil || !strings.Contains(err.Error(), "is in use")
			})
			if err == nil || !strings.Contains(err.Error(), "interrupted") {
				t.Fatalf("got %v, want that the copy was interrupted", err)
			}
			running, err := services.Start(t.Context(), half, io.Discard)
			if err == nil {
				running.Stop()
				t.Fatalf("a server started (%v)", running.Wait())
			}
			wantParts(t, err.Error(), "has not ended", "palisade migrate copy")
			_, _, created := services.CreateToken(t.Context(), half, services.CreateTokenRequest{Name: "half", Role: "ORG_ROLE_MEMBER", Scopes: []string{"web-api"}})
			_, migrated := services.Migrate(t.Context(), half)
			_, listed := services.MigrationStatuses(t.Context(), half)
			for _, err := range []error{created, migrated, listed} {
				if err == nil {
					t.Fatal("a command worked on it")
				}
				wantParts(t, err.Error(), "has not ended", "palisade migrate copy")
			}
			if !slices.ContainsFunc(services.Doctor(t.Context(), half), func(c services.Check) bool {
				return c.Name == "database" && !c.OK && strings.Contains(c.Detail, "has not ended")
			}) {
				t.Error("doctor does not see it")
			}
			mustCopy(t, half, request)
			apitest.Start(t, func(c *config.Config) { c.Data, c.Database, c.KeyFile = half.Data, half.Database, half.KeyFile })
		})
	}
}
