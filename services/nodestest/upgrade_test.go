package nodestest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// upgradeVariable names the git revision to upgrade from. The default is the last one before the newest migration.
const upgradeVariable = "PALISADE_TEST_UPGRADE_FROM"

// migrations is the directory of the PostgreSQL migrations.
const migrations = "ent/migrate/postgres"

// git runs git and returns its output without the final newline. It fails in a tree without history.
func git(args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-C", root}, args...)...)
	// In CI the checkout often belongs to another user, which git rejects by default.
	cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

// upgradeFrom returns the commit to upgrade from: the last one without the newest migration, so that the upgrade
// always includes a migration. The test is skipped when the history is too short.
func upgradeFrom(t testing.TB) (commit string) {
	t.Helper()
	if revision := os.Getenv(upgradeVariable); revision != "" {
		commit, err := git("rev-parse", "--verify", "--quiet", revision+"^{commit}")
		if err != nil {
			t.Fatalf("%s: git knows no commit %q here", upgradeVariable, revision)
		}
		return commit
	}
	files, err := filepath.Glob(filepath.Join(root, migrations, "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no migrations: %v", migrations, err)
	}
	newest := migrations + "/" + filepath.Base(files[len(files)-1]) // the names begin with the time
	if _, err := git("rev-parse", "--verify", "--quiet", "HEAD"); err != nil {
		t.Skipf("this is not a clone (a source archive?), so there is no earlier version to upgrade from")
	}
	// A merge counts as the commit that brought the migration.
	if commit, err = git("log", "-1", "--format=%H", "-m", "--first-parent", "--diff-filter=A", "--", newest); err != nil {
		t.Fatalf("git log %s: %v", newest, err)
	}
	before := commit + "~1"
	if commit == "" { // it is not committed yet
		before = "HEAD"
	}
	if commit, err = git("rev-parse", "--verify", "--quiet", before+"^{commit}"); err == nil {
		return commit
	}
	if shallow, _ := git("rev-parse", "--is-shallow-repository"); shallow == "true" {
		t.Skipf("this clone is shallow and does not reach back before %s: fetch the history (git fetch --unshallow), or name a commit in %s", newest, upgradeVariable)
	}
	t.Skipf("%s is as old as the repository: there is no earlier version to upgrade from", newest)
	return ""
}

// earlierBinary builds the version to upgrade from.
func earlierBinary(t testing.TB) string {
	t.Helper()
	commit := upgradeFrom(t)
	dir := t.TempDir()
	archive := filepath.Join(dir, "source.tar")
	if _, err := git("archive", "--output="+archive, commit); err != nil {
		t.Fatalf("git archive %s: %v", commit, err)
	}
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xf", archive, "-C", source).CombinedOutput(); err != nil {
		t.Fatalf("unpack: %v\n%s", err, out)
	}
	path := filepath.Join(dir, "palisade-before")
	if err := testrun.Build(t.Context(), source, path); err != nil {
		t.Fatal(err)
	}
	t.Logf("upgrading from %s", commit)
	return path
}

// TestRollingUpgrade: three nodes are upgraded one after the other under load, across the migrations between the
// two versions. Old and new nodes serve together on the new schema, and no request fails.
func TestRollingUpgrade(t *testing.T) {
	testrun.Deep(t) // runs several processes and installs programs
	t.Parallel()
	path, before, now, url := program(t, "haproxy"), earlierBinary(t), binary(t), pgtest.NewDatabase(t)
	nodes := startNodes(t, before, url)
	d := openDatabase(t, url)
	schema := func() int { return d.number("SELECT COUNT(*) FROM goose_db_version WHERE is_applied") }
	proxy := startHAProxy(t, path, nodes)
	l := startLoad(t, proxy.client(), "https://"+proxy.http, 4)
	l.more(10)

	had := schema()
	migrate := exec.Command(now, "migrate", "up")
	migrate.Env = append(environment(), nodes[0].env...)
	if out, err := migrate.CombinedOutput(); err != nil {
		t.Fatalf("migrate up: %v\n%s", err, out)
	}
	applied := schema() - had
	if applied == 0 && os.Getenv(upgradeVariable) == "" {
		t.Error("there was no migration to apply")
	}
	t.Logf("%d migrations were applied while nodes of the previous version served", applied)
	l.more(10) // by the old version on the new schema

	for _, n := range nodes {
		n.stop()
		requireNoErrors(t, n)
		n.binary = now
		n.start()
		proxy.waitFor(n.name, "UP")
		l.more(10)
	}
	// Roll back: the old version serves on the new schema.
	nodes[0].stop()
	requireNoErrors(t, nodes[0])
	nodes[0].binary = before
	nodes[0].start()
	proxy.waitFor(nodes[0].name, "UP")
	l.more(10)
	l.end()
	l.requireNoFailures()
	requireEarlierJobs(t, d, nodes[0], nodes[1:])
	for _, n := range nodes {
		requireNoErrors(t, n)
	}
	l.verify(d)
	requireJobsDone(t, d, time.Time{})
	for _, binary := range []string{before, now} {
		verify := exec.Command(binary, "audit", "verify")
		verify.Env = append(environment(), nodes[0].env...)
		if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), "OK ") {
			t.Errorf("audit verify of %s: %v\n%s", filepath.Base(binary), err, out)
		}
	}
}

// requireEarlierJobs makes a node of the previous version alone run the latest job of each kind again. It must not
// claim jobs of kinds that it does not know: they are in their own queues.
func requireEarlierJobs(t testing.TB, d *database, earlier *node, others []*node) {
	t.Helper()
	for _, n := range others {
		n.stop()
		requireNoErrors(t, n)
	}
	const again = `UPDATE river_job SET state = 'available', attempt = 0, finalized_at = NULL, scheduled_at = now(), unique_key = NULL, unique_states = NULL
WHERE id IN (SELECT MAX(id) FROM river_job WHERE state = 'completed' GROUP BY kind)`
	if _, err := d.db.ExecContext(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	d.waitForZero("jobs of the version before wait", "SELECT COUNT(*) FROM river_job WHERE queue = 'default' AND state IN ('available', 'retryable', 'running')")
	requireNoErrors(t, earlier)
	for _, n := range others {
		n.start()
	}
}

// requireNoErrors requires that the node has logged no error since its start.
func requireNoErrors(t testing.TB, n *node) {
	t.Helper()
	if lines := n.errors(); len(lines) > 0 {
		t.Errorf("%s (%s) logged errors: %q", n.name, filepath.Base(n.binary), lines)
	}
}
