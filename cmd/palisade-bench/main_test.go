package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary run the child roles, like the program itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Getenv(childEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// small is a run that checks that everything works; its figures mean nothing.
var small = options{
	findings: minFindings, growth: []int{minGrowth}, results: 300, largeBytes: 1 << 20, dependencies: 2000, listRequests: 2, reportFindings: 2000, rounds: 1, cpu: 5 * time.Millisecond,
}

func TestRun(t *testing.T) {
	databases := map[string]string{"sqlite": ""}
	if url := os.Getenv("PALISADE_TEST_POSTGRES"); url != "" {
		databases["postgres"] = url
	}
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			scratch := t.TempDir()
			t.Setenv("TMPDIR", scratch)
			o := small
			o.database, o.profiles = database, t.TempDir()
			wanted := []string{"list of 100 during lists without end: p95", "one-step workflow during analyses by a slow model: p95"}
			// `make check` runs the part hostile by itself, after these tests.
			o.only = slices.DeleteFunc(partNames(), func(part string) bool { return part == partHostile })
			if name == "postgres" { // once is enough for the part with servers of its own
				o.only, wanted = slices.DeleteFunc(o.only, func(part string) bool { return part == partNeighbours }), nil
			}
			var table bytes.Buffer
			if err := run(t.Context(), o, &table, t.Output()); err != nil && !errors.Is(err, errMiss) {
				t.Fatal(err)
			}
			for _, want := range append(wanted,
				"### Growth", "single triage", "start to ready", "a million findings on disk", "bare handler, 1 connection", "page over gRPC", "gzip",
				"plain reader", "p99 against p50", "page over gRPC, 500 rows", "a row of a large page over HTTP", "a row of a large page over gRPC", "at the end of a session", "page 0 again and again", "the handwritten skip", "by a jump", "crawl during an import: missed",
				"slowest list of findings, projects, secrets or scans: p95", "slowest list of dependencies: p95", "slowest list of issues: p95", "slowest numbers, filter values or groups: p95", "one issue with snippets, flow and history: p95", "prepared multi-row INSERT", "upload, new findings", "upload, the same again", "single triage, 16 clients", "bulk triage", "bulk update: undo",
				"readers during an import: p99", "triage during an import: slowest", "peak memory",
				"readers of another deployment, idle: p95", "readers of another deployment, during the import of 1 MB: errors", "≤ 2.25×", "≥ 0.5×", "≤ ^0.12",
			) {
				if !strings.Contains(table.String(), want) {
					t.Errorf("the table has no %q:\n%s", want, &table)
				}
			}
			for _, name := range []string{"page-http.pprof", "page-grpc.pprof", "upload-new.pprof", "upload-again.pprof", "upload-again.pprof.allocs"} {
				if info, err := os.Stat(filepath.Join(o.profiles, name)); err != nil || info.Size() == 0 {
					t.Errorf("profile %s is missing or empty: %v", name, err)
				}
			}
			nothingIn(t, scratch)
		})
	}
}

// cancelOn ends a context when a text is written.
type cancelOn struct {
	text   string
	cancel context.CancelFunc
}

func (w cancelOn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.cancel()
	}
	return len(p), nil
}

func TestInterruptLeavesNothing(t *testing.T) {
	for _, at := range []string{"fill: 0", "calibrate: bare handler"} {
		t.Run(at, func(t *testing.T) {
			scratch := t.TempDir()
			t.Setenv("TMPDIR", scratch)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if err := run(ctx, small, io.Discard, cancelOn{at, cancel}); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want context canceled", err)
			}
			nothingIn(t, scratch)
		})
	}
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for flag, args := range map[string][]string{
		"--findings":        {"--findings", "10"},
		"--only":            {"--only", "pages,dance"},
		"--growth":          {"--growth", "5"},
		"--large-bytes":     {"--large-bytes", "-1"},
		"--results":         {"--results", "0"},
		"--dependencies":    {"--dependencies", "-1"},
		"--list-requests":   {"--list-requests", "0"},
		"--report-findings": {"--report-findings", "-1"},
		"--rounds":          {"--rounds", "0"},
		"--cpu":             {"--cpu", "0s"},
		"--database":        {"--database", "mysql://u:secret@h/d"},
	} {
		command := newCommand()
		command.SetArgs(args)
		err := command.ExecuteContext(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), flag+":") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: got %v, want an error that names %s", args, err, flag)
		}
	}
}
