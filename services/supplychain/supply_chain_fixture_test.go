package supplychain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// lockBase is 2026-05-04T10:20:30.123456Z in microseconds: the time of the tests' scans.
const lockBase = 1_777_890_030_123_456

// inventory is a deployment with scanned projects.
type inventory struct {
	apitest.Tenant
	projects map[string]int64
}

// newInventory creates projects; the ids of scans and dependencies follow the order of the names.
func newInventory(t *testing.T, s *apitest.Server, of apitest.Tenant, names ...string) *inventory {
	t.Helper()
	in := &inventory{Tenant: of, projects: map[string]int64{}}
	err := s.Store.Write(tenant.NewContext(t.Context(), of.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		for _, name := range names {
			row, err := tx.Project.Create().SetName(name).SetNameKey(name).SetURL("https://git.acme.test/" + name).SetCreatedAt(lockBase).Save(ctx)
			if err != nil {
				return err
			}
			in.projects[name] = row.ID
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// change updates a project.
func (in *inventory) change(t *testing.T, s *apitest.Server, name string, set func(*ent.ProjectUpdateOne)) {
	t.Helper()
	err := s.Store.Write(tenant.NewContext(t.Context(), in.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		update := tx.Project.UpdateOneID(in.projects[name])
		set(update)
		return update.Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// scan stores a full scan of a project and its dependencies.
func (in *inventory) scan(t *testing.T, s *apitest.Server, name string, byLockfile map[string][]dependencies.Dependency) {
	t.Helper()
	err := s.Store.Write(tenant.NewContext(t.Context(), in.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Scan.Create().SetProjectID(in.projects[name]).SetRef("refs/heads/main").SetCommit("0123456789abcdef0123456789abcdef01234567").
			SetStatus("SCAN_STATUS_COMPLETED").SetProducts(2).SetIsFullScan(true).SetMeta([]byte{}).SetStats(map[string]any{}).SetStartedAt(lockBase).SetCommitTime(lockBase - 3600_000_000).Save(ctx)
		if err != nil {
			return err
		}
		return dependencies.Replace(ctx, s.Store, tx, dependencies.Scan{
			DeploymentID: in.DeploymentID, ProjectID: in.projects[name], ScanID: row.ID, At: lockBase, Complete: true,
		}, byLockfile)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// standard creates three projects with dependencies of all kinds; the last one is archived.
func standard(t *testing.T, s *apitest.Server, of apitest.Tenant) *inventory {
	t.Helper()
	in := newInventory(t, s, of, "acme/api", "acme/web", "acme/attic")
	in.scan(t, s, "acme/api", map[string][]dependencies.Dependency{
		"go.mod": {
			{Ecosystem: "gomod", Package: "github.com/acme/kit", Version: "v1.2.0", Transitivity: "direct", Line: 6},
			{Ecosystem: "gomod", Package: "golang.org/x/text", Version: "v0.14.0", Transitivity: "transitive", Line: 9, Licenses: []string{"BSD-3-Clause"}},
		},
	})
	in.scan(t, s, "acme/web", map[string][]dependencies.Dependency{
		"package-lock.json": {
			{
				Ecosystem: "npm", Package: "@acme/kit", Version: "2.10.0", Transitivity: "direct", Line: 31, ManifestPath: "package.json",
				ResolvedURL: "https://registry.acme.test/@acme/kit/-/kit-2.10.0.tgz", Licenses: []string{"MIT", "Apache-2.0"}, Children: []string{"left-pad@1.3.0"},
			},
			{Ecosystem: "npm", Package: "left-pad", Version: "1.3.0", Transitivity: "transitive", Line: 40, Licenses: []string{"WTFPL"}},
			{Ecosystem: "npm", Package: "left-pad", Version: "1.9.1", Transitivity: "transitive", Line: 48, Licenses: []string{"MIT"}},
		},
		"tools/requirements.txt": {{Ecosystem: "pypi", Package: "100%_sure", Version: "1.0rc1"}},
	})
	in.scan(t, s, "acme/attic", map[string][]dependencies.Dependency{
		"Gemfile.lock": {{Ecosystem: "gem", Package: "rake", Version: "13.0.6", Transitivity: "direct", Line: 3, Licenses: []string{"MIT"}}},
	})
	in.change(t, s, "acme/attic", func(u *ent.ProjectUpdateOne) { u.SetArchivedAt(lockBase) })
	return in
}

// v1 is the path of an operation of v1, v2 of one of v2.
func (in *inventory) v1(rest string) string {
	return fmt.Sprintf("/api/v1/deployments/%d/dependencies%s", in.DeploymentID, rest)
}

func (in *inventory) v2(rest string) string {
	return fmt.Sprintf("/api/sca/deployments/%d%s", in.DeploymentID, rest)
}

// listedPage holds the fields of a page of any list.
type listedPage struct {
	Dependencies []struct {
		RepositoryID json.Number `json:"repositoryId"`
		DefinedAt    struct{ Path string }
		Ecosystem    string
		Package      struct{ Name, VersionSpecifier string }
	}
	RepositorySummaries []struct {
		Name            string
		NumDependencies int
	}
	LockfileSummaries []struct {
		LockfilePath    string
		NumDependencies int
	}
	HasMore *bool
	Cursor  any
}

// read sends a body to a list and returns the page and its items, joined by blanks.
func read(t *testing.T, s caller, token, path, body string) (listedPage, string) {
	t.Helper()
	var page listedPage
	answer := s.Body(t, token, http.MethodPost, path, body, 200)
	if err := json.Unmarshal([]byte(answer), &page); err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	if page.HasMore == nil || page.Cursor == nil {
		t.Errorf("hasMore and cursor must be there: %s", answer)
	}
	var items []string
	for _, d := range page.Dependencies {
		items = append(items, d.Package.Name+"@"+d.Package.VersionSpecifier)
	}
	for _, r := range page.RepositorySummaries {
		items = append(items, fmt.Sprint(r.Name, ":", r.NumDependencies))
	}
	for _, l := range page.LockfileSummaries {
		items = append(items, fmt.Sprint(l.LockfilePath, ":", l.NumDependencies))
	}
	return page, strings.Join(items, " ")
}
