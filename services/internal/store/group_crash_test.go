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
)

// writersVariable names the data directory to the process in which TestKilledWriters lets writers work.
const writersVariable = "PALISADE_TEST_WRITERS"

const writers = 16

// TestWriters is no test: it is the process that TestKilledWriters kills. It writes pairs of rows until then, and
// prints the name of a pair when it was told that the pair is stored.
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

// insertPair writes one row with ent and one with the transaction below it, as the job queue does.
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

// TestKilledWriters: a process that is killed in the middle of many writers has stored all that it has told anybody,
// and of everything else all or nothing.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := openMigrated(t, Options{DataDir: dir})
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	var told []string
	for round := range 3 {
		told = append(told, killWriters(t, dir, 100+200*round)...)
	}
	st = open(t, Options{DataDir: dir})
	stored := map[string]int{}
	for _, name := range st.Reader.Setting.Query().Select(setting.FieldName).StringsX(tenant.System(t.Context())) {
		pair, _, _ := strings.Cut(name, " ")
		stored[pair]++
	}
	for _, pair := range told {
		if stored[pair] != 2 {
			t.Errorf("%s was told as stored, and %d of its 2 rows are there", pair, stored[pair])
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
	t.Logf("%d were told, %d are stored", len(told), len(stored))
}

// killWriters lets a process write until it has told of at least so many pairs, kills it and returns all it has told.
func killWriters(t *testing.T, dir string, enough int) (told []string) {
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
		told = append(told, lines.Text())
		if len(told) == enough {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	if len(told) < enough {
		t.Fatalf("the process ended by itself: %q", told)
	}
	return told
}
