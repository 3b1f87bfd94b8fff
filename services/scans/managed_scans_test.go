package scans_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/managedscan"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/scan"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/clone/clonetest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// secretNumber returns a made-up token in the form that GitHub gives its tokens.
func secretNumber(n int64) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	random, token := rand.New(rand.NewSource(n)), make([]byte, 36)
	for i := range token {
		token[i] = letters[random.Intn(len(letters))]
	}
	return "ghp" + "_" + string(token)
}

// managedWorld is a server whose project acme/web has its code at a connected host.
type managedWorld struct {
	*apitest.Server
	host *hosttest.GitHub
	code *clonetest.Server
}

func eachManaged(t *testing.T, test func(t *testing.T, w *managedWorld)) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		w := &managedWorld{Server: s, host: hosttest.NewGitHub(t), code: clonetest.New(t)}
		w.host.PullRequests = map[int64]hosttest.Request{}
		w.host.Code, w.code.Username, w.code.Password = w.code, "x-access-token", w.host.Token
		s.Body(t, s.Token, http.MethodPost, fmt.Sprintf("/api/scm/deployments/%d/configs", s.DeploymentID),
			fmt.Sprintf(`{"type":"SCM_TYPE_GITHUB_ENTERPRISE","namespace":"acme","baseUrl":%q,"accessToken":%q}`, w.host.URL, w.host.Token), http.StatusCreated)
		w.add(t, "acme/web", w.host.URL+"/acme/web", "refs/heads/main")
		test(t, w)
	})
}

// add creates a project that is bound to a repository.
func (w *managedWorld) add(t *testing.T, name, repository, branch string) (id int64) {
	t.Helper()
	err := w.Store.Write(w.System(t), func(ctx context.Context, tx *ent.Tx) error {
		row, err := tx.Project.Create().SetDeploymentID(w.DeploymentID).SetName(name).SetNameKey(strings.ToLower(name)).SetRepositoryURL(repository).
			SetDefaultBranch(branch).SetBoundBy("sync").SetCreatedAt(store.Now()).Save(ctx)
		if err == nil {
			id = row.ID
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (w *managedWorld) change(t *testing.T, do func(*ent.ProjectUpdate) *ent.ProjectUpdate) {
	t.Helper()
	err := w.Store.Write(w.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return do(tx.Project.Update().Where(project.Name("acme/web"))).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// run starts a scan and returns its id.
func (w *managedWorld) run(t *testing.T, ref string) int64 {
	t.Helper()
	request := &scansv1.RunManagedScansRequest{DeploymentId: w.DeploymentID, Projects: []string{"acme/web"}, Ref: ref}
	out, err := scansv1.NewScansServiceClient(w.Conn).RunManagedScans(w.Context(t, w.Token), request)
	if err != nil || len(out.GetTasks()) != 1 || len(out.GetErrors()) != 0 {
		t.Fatalf("%v %v", out, err)
	}
	var id int64
	_, err = fmt.Sscan(out.GetTasks()[0].GetScanId(), &id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// ended waits for the end of a scan. Both wires agree about it.
func (w *managedWorld) ended(t *testing.T, id int64) *scansv1.ManagedScan {
	t.Helper()
	var out *scansv1.GetManagedScanResponse
	request := &scansv1.GetManagedScanRequest{DeploymentId: w.DeploymentID, ScanId: id}
	apitest.Eventually(t, fmt.Sprintf("scan %d ends", id), func() (done bool) {
		var err error
		if out, err = scansv1.NewManagedScansServiceClient(w.Conn).GetManagedScan(w.Context(t, w.Token), request); err != nil {
			t.Fatal(err)
		}
		status := out.GetManagedScan().GetStatus()
		return status != scansv1.ScanStatus_SCAN_STATUS_PENDING && status != scansv1.ScanStatus_SCAN_STATUS_RUNNING
	})
	apitest.Same(t, out, w.Get(t, fmt.Sprintf("/api/agent/deployments/%d/managed-scans/%d", w.DeploymentID, id)))
	return out.GetManagedScan()
}

// secrets lists the findings on a ref as "file status".
func (w *managedWorld) secrets(t *testing.T, ref string) (list []string) {
	t.Helper()
	for _, row := range w.Store.Reader.Finding.Query().Where(finding.Ref(ref)).Order(ent.Asc(finding.FieldID)).AllX(w.System(t)) {
		list = append(list, fmt.Sprintf("%s %s", *row.FilePath, row.Status))
	}
	return list
}

// TestManagedScan: a scan on demand finds the secrets of the primary branch, and a later one sees that one is gone.
func TestManagedScan(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		secret := secretNumber(1)
		first := w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{
			"app/config.go": "package app\n\nconst token = \"" + secret + "\"\n", "go.mod": "module acme\n", "logo.bin": "\x00\x01" + secretNumber(2),
			"docs/a.md": "token " + secretNumber(3) + " // gitleaks:allow\n",
		})
		got := w.ended(t, w.run(t, ""))
		if got.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_COMPLETED || got.GetCommit() != first || got.GetRef() != "refs/heads/main" ||
			got.GetCause() != scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_REQUEST || got.GetStartedAt() == nil || got.GetCompletedAt() == nil {
			t.Errorf("got %v", got)
		}
		for _, line := range []string{"fetches refs/heads/main", "searches commit " + first, "secrets: 1 in 3 files", "1 binary files", "completed: 1 findings are new"} {
			if !strings.Contains(got.GetLog(), line) {
				t.Errorf("the log has no %q:\n%s", line, got.GetLog())
			}
		}
		if list := w.secrets(t, "refs/heads/main"); !slices.Equal(list, []string{"app/config.go open"}) {
			t.Errorf("got %q", list)
		}
		row := w.Store.Reader.Finding.Query().OnlyX(w.System(t))
		if row.Tool != "gitleaks" || strings.Contains(fmt.Sprint(row), secret) {
			t.Errorf("the finding is %v", row)
		}
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"app/config.go": "package app\n"})
		if got := w.ended(t, w.run(t, "main")); !strings.Contains(got.GetLog(), "1 are fixed") {
			t.Errorf("the log is\n%s", got.GetLog())
		}
		if list := w.secrets(t, "refs/heads/main"); !slices.Equal(list, []string{"app/config.go fixed"}) {
			t.Errorf("got %q", list)
		}
		searched := w.Body(t, w.Token, http.MethodPost, fmt.Sprintf("/api/v1/deployments/%d/scans/search", w.DeploymentID), `{}`, http.StatusOK)
		if strings.Count(searched, `"status":"SCAN_STATUS_COMPLETED"`) != 2 || strings.Count(searched, `"secrets":"1"`) != 1 {
			t.Errorf("got %s", searched)
		}
	})
}

// TestManagedScanRefused: projects that cannot be scanned get their own errors, and the others are scanned.
func TestManagedScanRefused(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "b"})
		w.add(t, "acme/elsewhere", "https://git.acme.test/acme/elsewhere", "refs/heads/main")
		w.add(t, "acme/unbound", "", "refs/heads/main")
		unborn := w.add(t, "acme/unborn", w.host.URL+"/acme/unborn", "")
		out, err := scansv1.NewScansServiceClient(w.Conn).RunManagedScans(w.Context(t, w.Token), &scansv1.RunManagedScansRequest{
			DeploymentId: w.DeploymentID, Projects: []string{"acme/web", "ACME/web", "acme/elsewhere", "acme/unbound", "acme/none"}, ScanConfigs: []*scansv1.WantedScan{{RepoId: unborn}, {RepoId: 999999}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var why []string
		for _, one := range out.GetErrors() {
			why = append(why, one.GetProject()+": "+one.GetMessage())
		}
		text := strings.Join(why, "\n")
		for _, part := range []string{
			"acme/elsewhere: no source-code host is configured", "acme/unbound: the project acme/unbound is bound to no repository", "acme/none: project not found",
			fmt.Sprintf("%d: the default branch of the project is not known yet", unborn), "999999: project not found",
		} {
			if !strings.Contains(text, part) {
				t.Errorf("no %q in\n%s", part, text)
			}
		}
		if len(out.GetTasks()) != 1 || len(out.GetErrors()) != 5 {
			t.Errorf("got %v", out)
		}
		path := fmt.Sprintf("/api/agent/deployments/%d/scans/run", w.DeploymentID)
		for _, body := range []string{`{}`, `{"scanConfigs":[{"repoId":"x"}]}`, `{"projects":["acme/web"],"ref":"a..b"}`} {
			w.Body(t, w.Token, http.MethodPost, path, body, http.StatusBadRequest)
		}
		reader := w.AddToken(t, w.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		w.Body(t, reader, http.MethodPost, path, `{"projects":["acme/web"]}`, http.StatusForbidden)
		other := w.AddTenant(t, "other")
		w.Body(t, other.Token, http.MethodGet, fmt.Sprintf("/api/agent/deployments/%d/managed-scans/%s", other.DeploymentID, out.GetTasks()[0].GetScanId()), "", http.StatusNotFound)
	})
}

// TestManagedScanFails: a scan that cannot read the code says why, and is retried once that is mended.
func TestManagedScanFails(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "b"})
		failed := w.ended(t, w.run(t, "gone"))
		if failed.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_ERROR || failed.GetProblem() == "" || !strings.Contains(failed.GetLog(), "ended: "+failed.GetProblem()) {
			t.Fatalf("got %v", failed)
		}
		w.code.Commit(t, "acme/web", "refs/heads/gone", map[string]string{"a": "b"})
		succeeded := w.run(t, "main")
		w.ended(t, succeeded)
		upload, _ := uploadTo(t, w.Server, "acme/web", lint(t, "a.go"))
		request := &scansv1.RetryScansRequest{DeploymentId: w.DeploymentID, ScanIds: []string{
			fmt.Sprint(failed.GetScanId()), fmt.Sprint(succeeded), fmt.Sprint(upload.GetScanId()), "424242", "x",
		}}
		out, err := scansv1.NewScansV2ServiceClient(w.Conn).RetryScans(w.Context(t, w.Token), request)
		if err != nil || len(out.GetTasks()) != 1 || len(out.GetErrors()) != 4 {
			t.Fatalf("%v %v", out, err)
		}
		for i, want := range []string{"it succeeded", "not a managed scan", "scan not found", "scan not found"} {
			if got := out.GetErrors()[i].GetMessage(); !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		task := out.GetTasks()[0]
		var id int64
		if _, err := fmt.Sscan(task.GetScanId(), &id); err != nil {
			t.Fatal(err)
		}
		again := w.ended(t, id)
		if again.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_COMPLETED || again.GetRetryOf() != failed.GetScanId() || task.GetBranch() != "refs/heads/gone" ||
			again.GetCause() != scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_RETRY || task.GetManagedScanId() != fmt.Sprint(again.GetId()) || task.GetTaskId() == "0" {
			t.Errorf("got %v, %v", again, task)
		}
		w.Body(t, w.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/managed-scans/%d/cancel", w.DeploymentID, id), `{}`, http.StatusBadRequest)
	})
}

// TestManagedScanIsCancelled: a scan whose host hangs is cancelled, and stores nothing.
func TestManagedScanIsCancelled(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": secretNumber(1)})
		hangs := make(chan struct{})
		w.code.Before = func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-hangs:
			case <-r.Context().Done():
			}
			return false
		}
		id := w.run(t, "")
		apitest.Eventually(t, "the scan runs", func() bool {
			return w.Store.Reader.Scan.Query().Where(scan.ID(id)).OnlyX(w.System(t)).Status == "SCAN_STATUS_RUNNING"
		})
		if again := w.run(t, ""); again == id {
			t.Error("a scan that runs covers a later request")
		} else if third := w.run(t, ""); third != again {
			t.Error("two scans of one ref wait")
		} else {
			w.cancel(t, again)
		}
		out := w.cancel(t, id)
		close(hangs)
		if out.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_CANCELLED || !strings.Contains(out.GetProblem(), "cancelled") {
			t.Errorf("got %v", out)
		}
		reader, _ := w.Store.DB()
		apitest.Eventually(t, "the jobs end", func() bool {
			var n int
			if err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job WHERE kind = 'managed_scan' AND finalized_at IS NULL").Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n == 0
		})
		if list := w.secrets(t, "refs/heads/main"); len(list) != 0 || w.ended(t, id).GetStatus() != scansv1.ScanStatus_SCAN_STATUS_CANCELLED {
			t.Errorf("got %q", list)
		}
	})
}

func (w *managedWorld) cancel(t *testing.T, id int64) *scansv1.ManagedScan {
	t.Helper()
	out, err := scansv1.NewManagedScansServiceClient(w.Conn).CancelManagedScan(w.Context(t, w.Token), &scansv1.CancelManagedScanRequest{DeploymentId: w.DeploymentID, ScanId: id})
	if err != nil {
		t.Fatal(err)
	}
	return out.GetManagedScan()
}

// TestManagedScanOfADeadNode: a scan whose node is silent begins again. If nodes die with it again and again, it ends.
func TestManagedScanOfADeadNode(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "b"})
		for claims, want := range map[int32]scansv1.ScanStatus{1: scansv1.ScanStatus_SCAN_STATUS_COMPLETED, 3: scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED} {
			var id int64
			ref := fmt.Sprintf("refs/heads/b%d", claims)
			w.code.Commit(t, "acme/web", ref, map[string]string{"a": "b"})
			err := w.Store.Write(w.System(t), func(ctx context.Context, tx *ent.Tx) error {
				of := tx.Project.Query().Where(project.Name("acme/web")).OnlyX(ctx)
				row := tx.Scan.Create().SetDeploymentID(w.DeploymentID).SetProjectID(of.ID).SetRef(ref).SetCommit("").SetStatus("SCAN_STATUS_RUNNING").
					SetProducts(0).SetIsFullScan(true).SetMeta([]byte{}).SetStats(map[string]any{}).SetStartedAt(store.Now()).SaveX(ctx)
				id = row.ID
				return tx.ManagedScan.Create().SetDeploymentID(w.DeploymentID).SetScanID(id).SetProjectID(of.ID).SetConfigID(1).
					SetCause("MANAGED_SCAN_CAUSE_SCHEDULE").SetClaims(claims).SetLeaseUntil(1).SetCreatedAt(store.Now()).Exec(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			w.enqueue(t, "lost_managed_scans")
			got := w.ended(t, id)
			if got.GetStatus() != want || !strings.Contains(got.GetLog(), "silent") {
				t.Errorf("after %d claims: %v", claims, got)
			}
		}
	})
}

// TestManagedScanThatNobodyTook: a scan that waited for a day never finished, and a new one of its ref begins.
func TestManagedScanThatNobodyTook(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "b"})
		var id int64
		err := w.Store.Write(w.System(t), func(ctx context.Context, tx *ent.Tx) error {
			of := tx.Project.Query().Where(project.Name("acme/web")).OnlyX(ctx)
			id = tx.Scan.Create().SetDeploymentID(w.DeploymentID).SetProjectID(of.ID).SetRef("refs/heads/main").SetCommit("").
				SetStatus("SCAN_STATUS_PENDING").SetProducts(0).SetIsFullScan(true).SetMeta([]byte{}).SetStats(map[string]any{}).SetStartedAt(1).SaveX(ctx).ID
			return tx.ManagedScan.Create().SetDeploymentID(w.DeploymentID).SetScanID(id).SetProjectID(of.ID).SetConfigID(1).
				SetCause("MANAGED_SCAN_CAUSE_SCHEDULE").SetWaitingFor("refs/heads/main").SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		w.enqueue(t, "abandoned_scans")
		if got := w.ended(t, id); got.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_NEVER_FINISHED || !strings.Contains(got.GetProblem(), "role scanner") {
			t.Errorf("got %v", got)
		}
		if got := w.ended(t, w.run(t, "")); got.GetScanId() == id || got.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_COMPLETED {
			t.Errorf("got %v", got)
		}
	})
}

// enqueue makes a periodic job run now.
func (w *managedWorld) enqueue(t *testing.T, kind string) {
	t.Helper()
	_, writer := w.Store.DB()
	now, cast := "strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 second')", ""
	if w.Store.Postgres() {
		now, cast = "now() - interval '1 second'", "::jsonb"
	}
	query := "INSERT INTO river_job (kind, args, max_attempts, queue, priority, state, scheduled_at) VALUES ('" + kind + "', '{}'" + cast +
		", 5, 'default', 1, 'available', " + now + ")"
	if _, err := writer.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

// TestScheduledScans: projects with full scans are scanned when it is time, others are not.
func TestScheduledScans(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": "b"})
		w.code.Commit(t, "acme/api", "refs/heads/main", map[string]string{"a": "b"})
		w.add(t, "acme/api", w.host.URL+"/acme/api", "refs/heads/main")
		w.Body(t, w.Token, http.MethodPatch, "/api/v1/deployments/acme/projects/acme/web/managed-scan", `{"full_scan":{"enabled":true}}`, http.StatusOK)
		w.enqueue(t, "scheduled_managed_scans")
		apitest.Eventually(t, "the project is scanned", func() bool {
			return w.Store.Reader.ManagedScan.Query().Where(managedscan.Cause("MANAGED_SCAN_CAUSE_SCHEDULE")).CountX(w.System(t)) == 1
		})
		row := w.Store.Reader.Project.Query().Where(project.Name("acme/web")).OnlyX(w.System(t))
		hour := int64(3_600_000_000)
		if left := *row.NextFullScanAt - store.Now(); left < 22*hour || left > 26*hour {
			t.Errorf("the next scan is in %d hours", left/hour)
		}
		w.ended(t, w.Store.Reader.ManagedScan.Query().OnlyX(w.System(t)).ScanID)
		w.enqueue(t, "scheduled_managed_scans")
		w.change(t, func(u *ent.ProjectUpdate) *ent.ProjectUpdate { return u.SetNextFullScanAt(1) })
		w.enqueue(t, "scheduled_managed_scans")
		apitest.Eventually(t, "the project is scanned again", func() bool {
			return w.Store.Reader.ManagedScan.Query().CountX(w.System(t)) == 2
		})
		if n := w.Store.Reader.Scan.Query().Where(scan.ProjectIDNEQ(row.ID)).CountX(w.System(t)); n != 0 {
			t.Errorf("%d scans of a project without managed scans", n)
		}
	})
}

// push sends the event that a pull request has a new head.
func (w *managedWorld) push(t *testing.T, number int, action, commit string) {
	t.Helper()
	hook := w.host.Hooks()[0]
	body := fmt.Sprintf(`{"action":%q,"number":%d,"pull_request":{"number":%d,"head":{"sha":%q}},
		"repository":{"id":1,"full_name":"acme/web","html_url":"%s/acme/web"}}`, action, number, number, commit, w.host.URL)
	mac := hmac.New(sha256.New, []byte(hook.Secret))
	_, _ = mac.Write([]byte(body))
	answer := w.Send(t, "", http.MethodPost, strings.TrimPrefix(hook.URL, w.Config.PublicURL), strings.NewReader(body), "Content-Type", "application/json",
		"X-GitHub-Event", "pull_request", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)), "X-GitHub-Delivery", commit+action)
	if answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
}

// statuses waits for the statuses of a commit, as "name state text".
func (w *managedWorld) statuses(t *testing.T, commit string, want ...string) {
	t.Helper()
	(&reviewed{Server: w.Server, host: &w.host.Server}).statuses(t, commit, want...)
}

// TestManagedScanOfAPullRequest: an event starts a scan of the head, and its findings block. A scan that fails blocks,
// unless the deployment wants that it passes.
func TestManagedScanOfAPullRequest(t *testing.T) {
	t.Parallel()
	eachManaged(t, func(t *testing.T, w *managedWorld) {
		anyNew := noNew()
		anyNew.Filters.Conditions = anyNew.Filters.Conditions[:1]
		newScanner(w.Server).block(t, anyNew)
		w.Body(t, w.Token, http.MethodPatch, fmt.Sprintf("/api/v1/deployments/%d/pull-request-feedback", w.DeploymentID), `{"settings":{"statuses":true}}`, http.StatusOK)
		config := w.Store.Reader.ScmConfig.Query().OnlyIDX(w.System(t))
		w.Body(t, w.Token, http.MethodPut, fmt.Sprintf("/api/scm/deployments/%d/subscriptions/%d", w.DeploymentID, config), "", http.StatusOK)
		w.code.Commit(t, "acme/web", "refs/heads/main", map[string]string{"a": secretNumber(1)})
		w.ended(t, w.run(t, ""))
		head := w.code.Commit(t, "acme/web", "refs/pull/7/head", map[string]string{"a": secretNumber(1), "b": secretNumber(2)})
		w.host.SetRequest(w.host.PullRequests, 7, hosttest.Request{State: "open", Commit: head})
		w.push(t, 7, "opened", head) // the project has no scans of pull requests
		w.change(t, func(u *ent.ProjectUpdate) *ent.ProjectUpdate { return u.SetManagedDiffScan(true) })
		w.push(t, 7, "synchronize", head)
		w.statuses(t, head, "Palisade failure 1 new finding; blocked by No new", "Palisade: No new failure blocks: 1 finding")
		if n := w.Store.Reader.Scan.Query().Where(scan.PullRequest(7)).CountX(w.System(t)); n != 1 {
			t.Errorf("%d scans of the pull request, want one", n)
		}

		broken := strings.Repeat("d", 40)
		w.host.SetRequest(w.host.PullRequests, 8, hosttest.Request{State: "open", Commit: broken})
		w.push(t, 8, "opened", broken) // its ref cannot be fetched
		apitest.Eventually(t, "the scan fails", func() bool {
			statuses := w.host.Statuses(broken)
			return len(statuses) > 0 && statuses[0].State == "failure" && strings.Contains(statuses[0].Text, "the scan did not succeed: ")
		})
		w.Body(t, w.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/managed_scan_settings", w.DeploymentID),
			`{"managedScanSettings":{"failOpen":true,"failOpenTimeout":"600s"}}`, http.StatusOK)
		failed := w.Store.Reader.Scan.Query().Where(scan.PullRequest(8)).OnlyIDX(w.System(t))
		w.Body(t, w.Token, http.MethodPost, fmt.Sprintf("/api/v2/deployments/%d/scans/retry", w.DeploymentID), fmt.Sprintf(`{"scanIds":["%d"]}`, failed), http.StatusOK)
		apitest.Eventually(t, "the pull request passes", func() bool {
			statuses := w.host.Statuses(broken)
			return statuses[0].State == "success" && strings.Contains(statuses[0].Text, "(fail open)")
		})
	})
}

// TestManagedScanSettings: the settings of a deployment are created, replaced and deleted.
func TestManagedScanSettings(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		path := fmt.Sprintf("/api/agent/deployments/%d/managed_scan_settings", s.DeploymentID)
		s.Body(t, s.Token, http.MethodGet, path, "", http.StatusNotFound)
		for _, wrong := range []string{`{}`, `{"managedScanSettings":{"failOpenTimeout":"5m"}}`, `{"managedScanSettings":{"failOpenTimeout":"59s"}}`, `{"managedScanSettings":{"failOpenTimeout":"-60s"}}`} {
			s.Body(t, s.Token, http.MethodPost, path, wrong, http.StatusBadRequest)
		}
		made := s.Body(t, s.Token, http.MethodPost, path, `{"managedScanSettings":{"failOpen":true,"failOpenTimeout":"900s"}}`, http.StatusOK)
		s.Body(t, s.Token, http.MethodPost, path, `{"managedScanSettings":{}}`, http.StatusConflict)
		row := s.Store.Reader.ManagedScanSetting.Query().OnlyX(s.System(t))
		want := fmt.Sprintf(`{"managedScanSettings":{"id":%d,"deploymentId":%d,"failOpen":true,"failOpenTimeout":"900s"}}`, row.ID, s.DeploymentID)
		if got := s.Body(t, s.Token, http.MethodGet, path, "", http.StatusOK); got != want || made != want {
			t.Errorf("got %s and %s, want %s", made, got, want)
		}
		one := fmt.Sprintf("%s/%d", path, row.ID)
		s.Body(t, s.Token, http.MethodPut, one, strings.Replace(want, fmt.Sprintf(`"id":%d`, row.ID), `"id":4711`, 1), http.StatusBadRequest)
		s.Body(t, s.Token, http.MethodPut, one, strings.Replace(want, `"deploymentId":`, `"deploymentId":9`, 1), http.StatusBadRequest)
		if got := s.Body(t, s.Token, http.MethodPut, one, want, http.StatusOK); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := s.Body(t, s.Token, http.MethodPut, one, `{"managedScanSettings":{"failOpen":false}}`, http.StatusOK); !strings.Contains(got, `"failOpen":false,"failOpenTimeout":""`) {
			t.Errorf("got %s", got)
		}
		other := s.AddTenant(t, "other")
		s.Body(t, other.Token, http.MethodDelete, fmt.Sprintf("/api/agent/deployments/%d/managed_scan_settings/%d", other.DeploymentID, row.ID), "", http.StatusNotFound)
		s.Body(t, s.Token, http.MethodDelete, one, "", http.StatusOK)
		s.Body(t, s.Token, http.MethodDelete, one, "", http.StatusNotFound)
	})
}

// TestProjectManagedScanSettings: the settings of projects are read one by one and together.
func TestProjectManagedScanSettings(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		uploadTo(t, s, "acme/web", lint(t, "a.go"))
		uploadTo(t, s, "acme/api", lint(t, "a.go"))
		s.Body(t, s.Token, http.MethodPatch, "/api/v1/deployments/acme/projects/acme/web/managed-scan", `{"diff_scan":{"enabled":true}}`, http.StatusOK)
		ids := s.Store.Reader.Project.Query().Order(ent.Asc(project.FieldID)).IDsX(s.System(t))
		got := s.Get(t, fmt.Sprintf("/api/sms/v2/deployments/%d/projects/%d/settings", s.DeploymentID, ids[0]))
		if want := `{"project_managed_scan_settings":{"diff_scan":{"enabled":true},"full_scan":{"enabled":false}}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		path := fmt.Sprintf("/api/sms/v2/deployments/%d/project_settings", s.DeploymentID)
		got = s.Body(t, s.Token, http.MethodPost, path, fmt.Sprintf(`{"projectIds":["%d","%d","999"]}`, ids[1], ids[0]), http.StatusOK)
		want := fmt.Sprintf(`{"settingsByProject":[{"projectId":"%d","project_managed_scan_settings":{"diff_scan":{"enabled":true},"full_scan":{"enabled":false}}},`+
			`{"projectId":"%d","project_managed_scan_settings":{"diff_scan":{"enabled":false},"full_scan":{"enabled":false}}}]}`, ids[0], ids[1])
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.Body(t, s.Token, http.MethodPost, path, `{"projectIds":["x"]}`, http.StatusBadRequest)
		s.Body(t, s.Token, http.MethodGet, fmt.Sprintf("/api/sms/v2/deployments/%d/projects/999/settings", s.DeploymentID), "", http.StatusNotFound)
	})
}
