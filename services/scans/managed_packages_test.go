package scans_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/scans/managed"
	"github.com/palisade/palisade/services/scans/managed/packages"
	"github.com/palisade/palisade/services/supplychain/dependencies"
)

// osvDocument is an advisory about the versions of a Go module before fixed. more has further members.
func osvDocument(id, module, fixed, modified, more string) string {
	return fmt.Sprintf(`{"id":%q,"modified":%q,"summary":"Logs leak in %s","affected":[{"package":{"ecosystem":"Go","name":%q},
		"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":%q}]}]}]%s}`, id, modified, module, module, fixed, more)
}

func (w *managedWorld) advise(t *testing.T, documents ...string) {
	t.Helper()
	w.Body(t, w.Token, http.MethodPost, fmt.Sprintf("/api/sca/deployments/%d/advisories", w.DeploymentID),
		`{"advisories":[`+strings.Join(documents, ",")+`]}`, http.StatusOK)
}

// vulnerable lists the findings as "rule package@version file severity status".
func (w *managedWorld) vulnerable(t *testing.T) (list []string) {
	t.Helper()
	for _, row := range w.Store.Reader.Finding.Query().Where(finding.IssueType("sca")).Order(ent.Asc(finding.FieldID)).AllX(w.System(t)) {
		list = append(list, fmt.Sprintf("%s %s %s %s %s", *row.Advisory, *row.Package, *row.FilePath, row.Severity, row.Status))
	}
	return list
}

const (
	plainModule = "module git.acme.test/acme/web\n\nrequire git.acme.test/acme/log v1.3.0\n\nrequire git.acme.test/acme/deep v0.9.0 // indirect\n"
	firstTime   = "2026-05-04T10:20:30Z"
	laterTime   = "2026-06-04T10:20:30Z"
)

// TestManagedPackages: a scan finds the packages of lockfiles that imported advisories name. Two advisories about one
// problem are one finding. Later advisories find the stored packages without a scan, and withdrawn ones close theirs.
func TestManagedPackages(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		const log, deep = "git.acme.test/acme/log", "git.acme.test/acme/deep"
		w.advise(t, osvDocument("GHSA-aaaa-bbbb-cccc", log, "1.4.0", firstTime, `,"aliases":["CVE-2026-1001"],"details":"It **leaks**.","database_specific":{"severity":"HIGH","cwe_ids":["CWE-532"]}`),
			osvDocument("GO-2026-0001", log, "1.4.0", firstTime, `,"aliases":["CVE-2026-1001","GHSA-aaaa-bbbb-cccc"]`),
			osvDocument("GO-2026-0002", log, "1.2.0", firstTime, ``), osvDocument("GO-2026-0003", "git.acme.test/acme/other", "9.0.0", firstTime, ``))
		head := w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"api/go.mod": plainModule, "broken/go.mod": "require (", "main.go": "package main\n"})
		got := w.ended(t, w.run(t, ""))
		if got.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_COMPLETED || !strings.Contains(got.GetLog(), "dependencies: 1 vulnerabilities of 2 packages in 1 lockfiles by 4 advisories; 1 lockfiles could not be read") {
			t.Errorf("got %v, log\n%s", got.GetStatus(), got.GetLog())
		}
		first := []string{"CVE-2026-1001 git.acme.test/acme/log api/go.mod high open"}
		if list := w.vulnerable(t); !slices.Equal(list, first) {
			t.Errorf("got %q", list)
		}
		listed := w.Body(t, w.Token, http.MethodPost, fmt.Sprintf("/api/sca/deployments/%d/dependencies", w.DeploymentID), `{}`, http.StatusOK)
		if !strings.Contains(listed, `"path":"api/go.mod","startLine":"5"`) || !strings.Contains(listed, `"transitivity":"TRANSITIVE","package":{"name":"`+deep) {
			t.Errorf("dependencies %s", listed)
		}
		w.advise(t, osvDocument("GHSA-dddd-eeee-ffff", deep, "1.0.0", firstTime, ""))
		apitest.Eventually(t, "the new advisory finds the package", func() bool { return len(w.vulnerable(t)) == 2 })
		second := append(first, "GHSA-DDDD-EEEE-FFFF git.acme.test/acme/deep api/go.mod medium open")
		if list := w.vulnerable(t); !slices.Equal(list, second) {
			t.Errorf("got %q", list)
		}
		rows := w.Store.Reader.Scan.Query().Order(ent.Asc(scan.FieldID)).AllX(w.System(t))
		if len(rows) != 2 || rows[1].Commit != head || !strings.Contains(string(rows[1].Meta), "advisories") {
			t.Errorf("scans %v", rows)
		}
		w.advise(t, osvDocument("GHSA-dddd-eeee-ffff", deep, "1.0.0", laterTime, `,"withdrawn":"`+laterTime+`"`))
		apitest.Eventually(t, "the finding of the withdrawn advisory is closed", func() bool { return strings.HasSuffix(w.vulnerable(t)[1], "fixed") })
		if list := w.vulnerable(t); !slices.Equal(list[:1], first) {
			t.Errorf("got %q", list)
		}
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"main.go": "package main\n"})
		w.ended(t, w.run(t, ""))
		if list := w.vulnerable(t); !strings.HasSuffix(list[0], "fixed") {
			t.Errorf("got %q", list)
		}
		if n := w.Store.Reader.Dependency.Query().CountX(w.System(t)); n != 0 {
			t.Errorf("%d dependencies are left", n)
		}
	})
}

// TestRecheckLeavesOthers: a check of stored packages closes no finding in a lockfile that another scanner has taken
// over, and a later managed scan finds all again.
func TestRecheckLeavesOthers(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		const log, deep = "git.acme.test/acme/log", "git.acme.test/acme/deep"
		w.advise(t, osvDocument("GO-2026-0001", log, "1.4.0", firstTime, ""))
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"api/go.mod": plainModule, "tools/go.mod": plainModule})
		w.ended(t, w.run(t, ""))
		err := w.Store.Write(w.System(t), func(ctx context.Context, tx *ent.Tx) error {
			return dependencies.Replace(ctx, w.Store, tx, dependencies.Scan{DeploymentID: w.DeploymentID, ProjectID: 1, ScanID: 1, At: store.Now()},
				map[string][]dependencies.Dependency{"tools/go.mod": {{Ecosystem: "gomod", Package: log, Version: "v1.3.0"}}})
		})
		if err != nil {
			t.Fatal(err)
		}
		w.advise(t, osvDocument("GO-2026-0002", deep, "1.0.0", firstTime, ""))
		apitest.Eventually(t, "the new advisory finds a package", func() bool { return len(w.vulnerable(t)) == 3 })
		want := []string{"GO-2026-0001 " + log + " api/go.mod medium open", "GO-2026-0001 " + log + " tools/go.mod medium open", "GO-2026-0002 " + deep + " api/go.mod medium open"}
		if list := w.vulnerable(t); !slices.Equal(list, want) {
			t.Errorf("got %q", list)
		}
		w.ended(t, w.run(t, ""))
		if list := w.vulnerable(t); !slices.Equal(list, append(want, "GO-2026-0002 "+deep+" tools/go.mod medium open")) {
			t.Errorf("got %q", list)
		}
	})
}

// TestAdvisoriesOfBills: packages of a bill of materials are compared, too, unless its tool reports vulnerabilities.
func TestAdvisoriesOfBills(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		w := &managedWorld{Server: apitest.Start(t, on)}
		npm := func(id, name string) string {
			return strings.Replace(osvDocument(id, name, "4.17.5", firstTime, ""), `"Go"`, `"npm"`, 1)
		}
		w.advise(t, npm("GHSA-aaaa-bbbb-cccc", "lodash"))
		upload(t, w.Server, "main", bom("syft", "lodash 4.17.4 package-lock.json", "tar 1.0.0 package-lock.json"))
		apitest.Eventually(t, "the advisory finds the package", func() bool { return len(w.vulnerable(t)) == 1 })
		upload(t, w.Server, "main", vulnerable("CVE-2026-1 ws 1.0.0"))
		w.advise(t, npm("GHSA-dddd-eeee-ffff", "tar"), npm("GHSA-gggg-hhhh-jjjj", "ws"))
		apitest.Eventually(t, "the later advisory finds the other package", func() bool { return len(w.vulnerable(t)) == 3 })
		apitest.Eventually(t, "all is compared", func() bool { return !w.Store.Reader.AdvisoryChange.Query().ExistX(w.System(t)) })
		want := []string{"GHSA-AAAA-BBBB-CCCC lodash package-lock.json medium open", "CVE-2026-1 ws x high open", "GHSA-DDDD-EEEE-FFFF tar package-lock.json medium open"}
		if list := w.vulnerable(t); len(list) != 3 || list[0] != want[0] || list[2] != want[2] {
			t.Errorf("got %q", list)
		}
		upload(t, w.Server, "main", bom("syft", "lodash 4.17.4 yarn.lock"))
		apitest.Eventually(t, "the findings of the lockfile that is gone are closed", func() bool {
			list := w.vulnerable(t)
			return len(list) == 4 && strings.HasSuffix(list[0], "fixed") && strings.HasSuffix(list[2], "fixed") && strings.HasSuffix(list[3], "yarn.lock medium open")
		})
	})
}

// TestAdvisoriesAtSize: all advisories of an import reach all stored packages, each project in few scans. The deep run
// has a million packages and 250,000 advisories.
func TestAdvisoriesAtSize(t *testing.T) {
	projects, perProject, advisories := testrun.Size(3, 200), testrun.Size(200, 5_000), testrun.Size(100, 250_000)
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		w := &managedWorld{Server: apitest.Start(t, on)}
		for n := range projects {
			w.inventory(t, w.add(t, fmt.Sprintf("acme/p%d", n), "", "refs/heads/main"), n*perProject/2, perProject)
		}
		begun := time.Now()
		var batch []string
		expected := 0
		for n := range advisories {
			module := fmt.Sprintf("git.acme.test/acme/m%d", n*7) // a seventh of the packages
			for p := range projects {
				if at := n*7 - p*perProject/2; at >= 0 && at < perProject {
					expected++
				}
			}
			if batch = append(batch, osvDocument(fmt.Sprintf("GO-2026-%06d", n), module, "2.0.0", firstTime, "")); len(batch) == 500 || n == advisories-1 {
				w.advise(t, batch...)
				batch = nil
			}
		}
		imported := time.Since(begun)
		apitest.Eventually(t, "all packages are compared", func() bool {
			return w.Store.Reader.Finding.Query().CountX(w.System(t)) == expected && !w.Store.Reader.AdvisoryChange.Query().ExistX(w.System(t))
		})
		scans := w.Store.Reader.Scan.Query().CountX(w.System(t)) - projects
		t.Logf("%d packages, %d advisories: imported in %v, %d findings in %d scans %v later", projects*perProject, advisories, imported, expected, scans, time.Since(begun)-imported)
		begun = time.Now()
		w.advise(t, osvDocument("GO-2027-1", "git.acme.test/acme/m1", "2.0.0", firstTime, ""))
		apitest.Eventually(t, "one more is compared", func() bool { return w.Store.Reader.Finding.Query().CountX(w.System(t)) == expected+1 })
		t.Logf("one more advisory: %v", time.Since(begun))
	})
}

// inventory stores a managed scan of a project that found Go modules from a number on.
func (w *managedWorld) inventory(t *testing.T, projectID int64, from, n int) {
	t.Helper()
	list := make([]dependencies.Dependency, n)
	for i := range list {
		list[i] = dependencies.Dependency{Ecosystem: "gomod", Package: fmt.Sprintf("git.acme.test/acme/m%d", from+i), Version: "v1.0.0", Transitivity: dependencies.Direct}
	}
	err := w.Store.Write(w.System(t), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Scan.Create().SetDeploymentID(w.DeploymentID).SetProjectID(projectID).SetRef("refs/heads/main").SetCommit(strings.Repeat("a", 40)).
			SetStatus(scansv1.ScanStatus_SCAN_STATUS_COMPLETED.String()).SetProducts(0).SetIsFullScan(true).SetMeta([]byte{}).SetStats(map[string]any{}).
			SetStartedAt(store.Now()).SetCompletedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		err = tx.ManagedScan.Create().SetDeploymentID(w.DeploymentID).SetScanID(row.ID).SetProjectID(projectID).SetConfigID(1).
			SetCause(scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_REQUEST.String()).SetCreatedAt(store.Now()).Exec(ctx)
		if err != nil {
			return err
		}
		return dependencies.Replace(ctx, w.Store, tx, dependencies.Scan{
			DeploymentID: w.DeploymentID, ProjectID: projectID, ScanID: row.ID, At: store.Now(), Source: packages.Tool + "/" + managed.Category, Complete: true,
		}, map[string][]dependencies.Dependency{"go.mod": list})
	})
	if err != nil {
		t.Fatal(err)
	}
}
