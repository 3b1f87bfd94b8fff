package dbcopy

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/testrun"
)

// copyEnv makes this test program a copy that can be killed. It has the source, the key file and the target.
const copyEnv = "PALISADE_TEST_COPY_FROM"

// TestCopyProcess is the process that TestKilled kills.
func TestCopyProcess(t *testing.T) {
	from, key, to := os.Getenv(copyEnv), os.Getenv(copyEnv+"_KEY"), os.Getenv(copyEnv+"_TO")
	if from == "" {
		t.Skip("not started by TestKilled")
	}
	source, err := ParseEndpoint(from)
	if err != nil {
		t.Fatal(err)
	}
	target, err := ParseEndpoint(to)
	if err != nil {
		t.Fatal(err)
	}
	mustRun(t, Options{From: source, To: target, KeyFile: key, BatchRows: 7, Progress: func(Phase, string, int64, int64) { fmt.Println("batch") }})
}

// TestKilled: a copy whose process is killed between or inside batches is resumed and ends like an uninterrupted
// one.
func TestKilled(t *testing.T) {
	testrun.Deep(t) // kills processes
	t.Parallel()
	f := newFixture(t, 40)
	there := newPostgres(t)
	whole := killed(t, f, Endpoint{SQLite: f.path}, there)
	back := Endpoint{SQLite: filepath.Join(t.TempDir(), store.SQLiteFile)}
	if again := killed(t, f, there, back); !slices.Equal(whole.Tables, again.Tables) {
		t.Error("the copy back has other checksums")
	}
	if !slices.Equal(dump(t, f.path), dump(t, back.SQLite)) {
		t.Error("the copy back has other rows")
	}
}

// killed kills a few copies and finishes the last one.
func killed(t *testing.T, f *fixture, from, to Endpoint) Result {
	t.Helper()
	for i := range 5 {
		text := to.Postgres
		if text == "" {
			text = to.String()
		}
		source := from.Postgres
		if source == "" {
			source = from.String()
		}
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCopyProcess$")
		command.Env = append(os.Environ(), copyEnv+"="+source, copyEnv+"_KEY="+f.keyFile, copyEnv+"_TO="+text)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		lines, left := bufio.NewScanner(out), i*60+rand.IntN(100)
		for left > 0 && lines.Scan() {
			left--
		}
		if err := command.Process.Kill(); err != nil {
			t.Log(err)
		}
		_ = command.Wait() // fails because of the kill
	}
	var result Result
	var err error
	// PostgreSQL notices that a client is gone only when it sends the next response, and releases its lock then.
	for deadline := time.Now().Add(2 * time.Minute); ; {
		result, err = Run(t.Context(), Options{From: from, To: to, KeyFile: f.keyFile, BatchRows: 7})
		if !errors.Is(err, ErrInUse) || time.Now().After(deadline) {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if err != nil || !result.OK || result.ResumedFrom.IsZero() {
		t.Fatalf("%v %v %v", err, result.OK, result.ResumedFrom)
	}
	return result
}
