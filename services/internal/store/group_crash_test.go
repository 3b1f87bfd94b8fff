package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/setting"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/testrun"
)

// writersVariable passes the data directory to the process that TestKilledWriters starts.
const writersVariable = "PALISADE_TEST_WRITERS"

const writers = 16

// TestWriters is not a test but the process that TestKilledWriters kills. It writes pairs of rows, and prints the
// name of each pair after its Write has succeeded.
func TestWriters(t *testing.T) {
	dir := os.Getenv(writersVariable)
	if dir == "" {
		t.Skip("the process of TestKilledWriters")
	}
	st := open(t, Options{DataDir: dir})
	ctx, start := tenant.System(t.Context()), Now()
	failed := make(chan error)
	for w := range writers {
		go func() {
			for n := 0; ; n++ {
				name := fmt.Sprintf("%d-%d-%d", start, w, n)
				err := st.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return insertPair(ctx, st, tx, name, n%5 == 4) })
				if (err != nil) != (n%5 == 4) {
					failed <- err
				}
				if err == nil {
					_, _ = os.Stdout.WriteString(name + "\n")
				}
			}
		}()
	}
	t.Fatal(<-failed)
}

// insertPair writes one row with ent and one with the *sql.Tx below it, as the job queue does.
func insertPair(ctx context.Context, st *Store, tx *ent.Tx, name string, fail bool) error {
	if err := insert(ctx, tx, name+" by ent"); err != nil {
		return err
	}
	own, _ := st.Tx(ctx)
	if _, err := own.ExecContext(ctx, "INSERT INTO settings (name, value) VALUES ('"+name+" by SQL', 'x')"); err != nil {
		return err
	}
	if fail {
		return errBroken
	}
	return nil
}

// TestKilledWriters: after a process with many writers was killed, every acknowledged Write is stored, and no other
// Write is stored in part.
func TestKilledWriters(t *testing.T) {
	testrun.Deep(t) // kills processes
	t.Parallel()
	dir := t.TempDir()
	st := openMigrated(t, Options{DataDir: dir})
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	var reported []string
	for round := range 3 {
		reported = append(reported, killWriters(t, dir, 100+200*round)...)
	}
	st = open(t, Options{DataDir: dir})
	stored := map[string]int{}
	for _, name := range st.Reader.Setting.Query().Select(setting.FieldName).StringsX(tenant.System(t.Context())) {
		pair, _, _ := strings.Cut(name, " ")
		stored[pair]++
	}
	for _, pair := range reported {
		if stored[pair] != 2 {
			t.Errorf("%s was acknowledged, and %d of its 2 rows are stored", pair, stored[pair])
		}
	}
	for pair, rows := range stored {
		var start, writer, n int
		if _, err := fmt.Sscanf(pair, "%d-%d-%d", &start, &writer, &n); err != nil || rows != 2 || n%5 == 4 {
			t.Errorf("%s has %d rows (%v)", pair, rows, err)
		}
	}
	var check string
	if err := st.readerDB.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&check); err != nil || check != "ok" {
		t.Errorf("the file is %q, %v", check, err)
	}
	t.Logf("%d acknowledged, %d stored", len(reported), len(stored))
}

// killWriters starts a process, kills it after it has acknowledged this number of pairs, and returns all
// acknowledged pairs.
func killWriters(t *testing.T, dir string, enough int) (reported []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriters$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), writersVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		reported = append(reported, lines.Text())
		if len(reported) == enough {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // fails because of the kill
	if len(reported) < enough {
		t.Fatalf("the process ended before it was killed: %q", reported)
	}
	return reported
}
