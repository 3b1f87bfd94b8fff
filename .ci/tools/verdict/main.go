// Command verdict reads what `go test -json` printed, also of a run in which single tests were run again, and says what
// failed.
//
//	verdict FILE…
//
// gotestsum runs failed tests again. It then takes a package for green that failed without a failed test, as when its
// TestMain fails or its process is killed, because it has nothing to run again. So verdict also fails for a package
// that failed without a failed test, and for a test that began and never ended. It prints the slowest packages and
// tests, the tests that passed only when they were run again, and last what failed. It then exits with 1.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action, Package, Test string
	Elapsed               float64 // seconds
}

// result is what became of a test or, with an empty name, of a package.
type result struct {
	last    string // its last action
	failed  bool   // at least once
	seconds float64
}

type key struct{ pkg, test string }

// results is what a run says about all tests and packages.
type results map[key]*result

func main() {
	all := results{}
	for _, path := range os.Args[1:] {
		if err := all.readFile(path); err != nil {
			fmt.Fprintln(os.Stderr, "verdict:", err)
			os.Exit(2)
		}
	}
	if !all.print(os.Stdout) {
		os.Exit(1)
	}
}

func (r results) readFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return r.read(file)
}

// read adds the events of a run. Lines that are no events, such as messages of the compiler, are passed over.
func (r results) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Package != "" {
			r.add(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r results) add(e event) {
	switch e.Action {
	case "run", "start", "pass", "fail", "skip":
	default:
		return
	}
	k := key{e.Package, e.Test}
	if r[k] == nil {
		r[k] = &result{}
	}
	one := r[k]
	one.last = e.Action
	one.failed = one.failed || e.Action == "fail"
	one.seconds = max(one.seconds, e.Elapsed)
}

// print writes the whole verdict and reports whether the run passed.
func (r results) print(out io.Writer) bool {
	r.slowest(out, "packages", func(k key) bool { return k.test == "" })
	r.slowest(out, "tests", func(k key) bool { return k.test != "" && !strings.Contains(k.test, "/") })
	section(out, "tests that failed and passed when they were run again: each is a defect, of the code or of the test", r.flaky())
	failures := r.failures()
	section(out, "failed", failures)
	return len(failures) == 0 && len(r) > 0
}

func section(out io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintln(out, "==", title)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
}

// flaky returns the tests that failed and whose last run passed.
func (r results) flaky() (lines []string) {
	for k, one := range r {
		if k.test != "" && one.failed && one.last == "pass" {
			lines = append(lines, k.pkg+" "+k.test)
		}
	}
	slices.Sort(lines)
	return lines
}

// failures returns the tests whose last run failed or never ended, and the packages that failed for another reason.
func (r results) failures() (lines []string) {
	if len(r) == 0 {
		return []string{"no test ran"}
	}
	explained := map[string]bool{} // packages with a test that failed
	for k, one := range r {
		if k.test == "" {
			continue
		}
		explained[k.pkg] = explained[k.pkg] || one.failed
		switch one.last {
		case "fail":
			lines = append(lines, "FAIL "+k.pkg+" "+k.test)
		case "run":
			lines = append(lines, "FAIL "+k.pkg+" "+k.test+" never ended")
			explained[k.pkg] = true
		}
	}
	for k, one := range r {
		if k.test == "" && one.failed && !explained[k.pkg] {
			lines = append(lines, "FAIL "+k.pkg+" without a failed test: see its output above")
		}
	}
	slices.Sort(lines)
	return lines
}

// slowest prints the ten slowest packages or tests.
func (r results) slowest(out io.Writer, what string, of func(key) bool) {
	var keys []key
	for k := range r {
		if of(k) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if r[a].seconds != r[b].seconds {
			return int(1000 * (r[b].seconds - r[a].seconds))
		}
		return strings.Compare(a.pkg+a.test, b.pkg+b.test)
	})
	fmt.Fprintf(out, "== the slowest %s, in seconds\n", what)
	for _, k := range keys[:min(10, len(keys))] {
		fmt.Fprintf(out, "%7.1f %s\n", r[k].seconds, strings.TrimSuffix(k.pkg+" "+k.test, " "))
	}
}
