// Package playground runs a scan engine on rules and code that somebody typed. The engine is an executable with the
// command line of Semgrep. Both inputs are untrusted: the engine runs in a sandbox, with limits.
package playground

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Limits of a run.
const (
	maxOutput = 8 << 20
	maxLog    = 8 << 10
	maxMemory = 4 << 30 // address space of each process
	maxFile   = 64 << 20
	maxFiles  = 1024 // open ones
)

// Types of errors of a run.
const (
	Timeout        = "timeout"
	OutputTooLarge = "output_too_large"
	Engine         = "engine"
)

// Job is what the engine runs.
type Job struct {
	// Rules is a file of rules; Target is the code in Language.
	Rules, Target []byte
	Language      string
	// Deep asks for analysis of data flow between functions.
	Deep bool
}

// Result is what the engine answered.
type Result struct {
	// Status is the exit status; -1 if the engine was ended.
	Status int
	// Output is the JSON object that it wrote; nil if it wrote none.
	Output json.RawMessage
	// Error is why there is no result: Timeout, OutputTooLarge or Engine; empty if there is one.
	Error string
	// Log is the end of the engine's standard error.
	Log      string
	Duration time.Duration
}

// Runner runs an engine.
type Runner struct {
	engine  string
	timeout time.Duration
	slots   chan struct{}
}

// concurrent is the number of engines that run at once. Each may take a processor and much memory.
const concurrent = 2

// New returns a runner of the executable.
func New(engine string, timeout time.Duration) *Runner {
	return &Runner{engine: engine, timeout: timeout, slots: make(chan struct{}, concurrent)}
}

// Name is the file name of the engine.
func (r *Runner) Name() string { return filepath.Base(r.engine) }

// ErrBusy says that other runs did not end in time.
var ErrBusy = errors.New("other runs have not ended")

// NoSandboxError says why the machine cannot run the engine in a sandbox.
type NoSandboxError string

func (e NoSandboxError) Error() string { return string(e) }

// Run runs a job. It returns ErrBusy or a NoSandboxError; all that the engine does wrong is in the result.
func (r *Runner) Run(ctx context.Context, job Job) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, ErrBusy
	}
	dir, err := os.MkdirTemp("", "palisade-playground-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // only temporary files
	target := "target" + extension(job.Language)
	for name, content := range map[string][]byte{rulesFile: job.Rules, target: job.Target} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	arguments := []string{"scan", "--config", inside + "/" + rulesFile, "--json", "--metrics", "off", "--disable-version-check", "--jobs", "1"}
	if job.Deep {
		arguments = append(arguments, "--pro")
	}
	return r.run(ctx, cancel, dir, append(arguments, inside+"/"+target))
}

// rulesFile is the name of the file of rules.
const rulesFile = "rules.yaml"

func (r *Runner) run(ctx context.Context, cancel context.CancelFunc, dir string, arguments []string) (*Result, error) {
	cmd, err := sandboxed(ctx, r.engine, dir, r.timeout, arguments)
	if err != nil {
		return nil, err
	}
	// The sandbox ends with the thread that starts it. No other goroutine may end this one meanwhile.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	output, log := &limited{most: maxOutput, full: cancel}, &tail{}
	cmd.Stdout, cmd.Stderr = output, log
	began := time.Now()
	err = cmd.Run()
	result := &Result{Status: cmd.ProcessState.ExitCode(), Duration: time.Since(began), Log: log.String()}
	var exit *exec.ExitError
	switch {
	case output.overflowed:
		result.Error = OutputTooLarge
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		result.Error = Timeout
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && !errors.As(err, &exit):
		return nil, err
	case strings.HasPrefix(result.Log, "bwrap: "):
		return nil, NoSandboxError("this machine does not let the server make a sandbox: " + strings.TrimSpace(result.Log))
	default:
		if text := bytes.TrimSpace(output.text); bytes.HasPrefix(text, []byte("{")) && json.Valid(text) {
			result.Output = text
		}
		// 1 says that there are findings.
		if result.Output == nil || result.Status > 1 || result.Status < 0 {
			result.Error = Engine
		}
	}
	return result, nil
}

// limited keeps what is written up to a limit, and then ends the writer.
type limited struct {
	text       []byte
	most       int
	full       func()
	overflowed bool
}

func (l *limited) Write(p []byte) (int, error) {
	if len(l.text)+len(p) > l.most {
		l.overflowed = true
		l.full()
		return 0, errors.New("too much output")
	}
	l.text = append(l.text, p...)
	return len(p), nil
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if extra := len(t.text) - maxLog; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.text), "\uFFFD") }

// extensions are the file extensions of languages. Engines choose files by them.
var extensions = map[string]string{
	"apex": ".cls", "bash": ".sh", "c": ".c", "clojure": ".clj", "cpp": ".cpp", "csharp": ".cs", "dart": ".dart", "elixir": ".ex", "go": ".go",
	"html": ".html", "java": ".java", "javascript": ".js", "json": ".json", "jsonnet": ".jsonnet", "julia": ".jl", "kotlin": ".kt", "lua": ".lua",
	"ocaml": ".ml", "php": ".php", "python": ".py", "r": ".r", "ruby": ".rb", "rust": ".rs", "scala": ".scala", "scheme": ".scm",
	"solidity": ".sol", "swift": ".swift", "terraform": ".tf", "typescript": ".ts", "vue": ".vue", "xml": ".xml", "yaml": ".yaml",
}

func extension(language string) string { return cmp.Or(extensions[language], ".txt") }
