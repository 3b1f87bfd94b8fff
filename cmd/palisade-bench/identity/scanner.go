package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// gosecVersion is the pinned version of gosec. The version of staticcheck comes from .ci/tools/go.mod.
const gosecVersion = "v2.22.4"

// errBroken means that an edit produced code that does not compile.
var errBroken = errors.New("the edited code does not compile")

// Scanners runs real scanners, and caches their reports by code in a directory.
type Scanners struct {
	cache string
	// programs has the installed tools, by name.
	programs map[string]program
	// runs counts scanner runs that were not cached.
	runs int
}

// NewScanners uses a cache directory, and creates it if necessary.
func NewScanners(cache string) (*Scanners, error) {
	cache, err := filepath.Abs(cache)
	if err != nil {
		return nil, err
	}
	return &Scanners{cache: cache, programs: map[string]program{}}, os.MkdirAll(filepath.Join(cache, "reports"), 0o700)
}

// Runs returns the number of scanner runs since the start.
func (s *Scanners) Runs() int { return s.runs }

// Module fetches a Go module with the go command and returns its directory.
func (s *Scanners) Module(ctx context.Context, module, version string) (string, error) {
	out, err := s.goCommand(ctx, s.cache, "mod", "download", "-json", module+"@"+version)
	if err != nil {
		return "", err
	}
	var answer struct{ Dir, Error string }
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", err
	}
	if answer.Error != "" {
		return "", fmt.Errorf("%s@%s: %s", module, version, answer.Error)
	}
	return answer.Dir, nil
}

// goCommand runs the go command outside of any module.
func (s *Scanners) goCommand(ctx context.Context, dir string, arguments ...string) ([]byte, error) {
	return command(ctx, dir, []string{"GOFLAGS=", "GOWORK=off"}, "go", arguments...)
}

// command returns the output of a program; an error contains its stderr.
func command(ctx context.Context, dir string, env []string, name string, arguments ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		complaint := stderr.String()
		if len(complaint) > 1000 {
			complaint = complaint[:1000]
		}
		return out, fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(arguments, " "), err, complaint)
	}
	return out, nil
}

// program is an installed tool.
type program struct{ path, version string }

// program installs a tool at its first use.
func (s *Scanners) program(ctx context.Context, tool Tool) (p program, err error) {
	if p, done := s.programs[tool.name]; done {
		return p, nil
	}
	if p.path, err = tool.install(ctx, s); err != nil {
		return p, err
	}
	if p.version, err = tool.version(ctx, p.path); err != nil {
		return p, err
	}
	s.programs[tool.name] = p
	return p, nil
}

// Tool is a real scanner.
type Tool struct {
	name string
	// install puts the program into a directory and returns its path.
	install func(ctx context.Context, s *Scanners) (program string, err error)
	// version returns the version of the program.
	version func(ctx context.Context, program string) (string, error)
	// run writes the SARIF report about the code in dir.
	run func(ctx context.Context, program, dir string) ([]byte, error)
}

// toolModule is the directory of the module that pins the versions of tools.
var toolModule = filepath.Join(".ci", "tools")

// Staticcheck has the version in .ci/tools/go.mod. It is built in the repository.
var Staticcheck = Tool{
	name: "staticcheck",
	install: func(ctx context.Context, s *Scanners) (string, error) {
		program := filepath.Join(s.cache, "staticcheck")
		_, err := command(ctx, toolModule, nil, "go", "build", "-o", program, "honnef.co/go/tools/cmd/staticcheck")
		return program, err
	},
	version: func(ctx context.Context, program string) (string, error) {
		out, err := command(ctx, "", nil, program, "-version")
		return string(out), err
	},
	run: func(ctx context.Context, program, dir string) ([]byte, error) {
		out, err := command(ctx, dir, []string{"GOWORK=off"}, program, "-f", "sarif", "-checks", "all", "./...")
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 1 && len(out) > 0 {
			err = nil // it found something
		}
		if err == nil && bytes.Contains(out, []byte(`"ruleId":"compile"`)) {
			err = errBroken
		}
		return out, err
	},
}

// Gosec has the version gosecVersion.
var Gosec = Tool{
	name: "gosec",
	install: func(ctx context.Context, s *Scanners) (string, error) {
		dir := filepath.Join(s.cache, "gosec-"+gosecVersion)
		program := filepath.Join(dir, "gosec")
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
		_, err := command(ctx, s.cache, []string{"GOFLAGS=", "GOWORK=off", "GOBIN=" + dir}, "go", "install", "github.com/securego/gosec/v2/cmd/gosec@"+gosecVersion)
		return program, err
	},
	version: func(context.Context, string) (string, error) { return gosecVersion, nil },
	run: func(ctx context.Context, program, dir string) ([]byte, error) {
		// gosec skips packages that do not compile.
		if _, err := command(ctx, dir, []string{"GOWORK=off"}, "go", "build", "./..."); err != nil {
			return nil, fmt.Errorf("%w: %w", errBroken, err)
		}
		return command(ctx, dir, []string{"GOWORK=off"}, program, "-quiet", "-no-fail", "-fmt", "sarif", "./...")
	},
}

var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// Scan runs a scanner on a tree, or returns the cached report.
func (s *Scanners) Scan(ctx context.Context, tool Tool, tree *Tree) (_ *Report, err error) {
	installed, err := s.program(ctx, tool)
	if err != nil {
		return nil, err
	}
	of := unsafeName.ReplaceAllString(tool.name+"-"+installed.version, "_")
	remembered := filepath.Join(s.cache, "reports", of+"-"+tree.Digest()[:32]+".sarif")
	content, err := os.ReadFile(remembered)
	if err != nil {
		if content, err = s.fresh(ctx, tool, installed.path, tree); err != nil {
			return nil, err
		}
		if err := remember(remembered, content); err != nil {
			return nil, err
		}
	}
	return ParseReport(content, "")
}

// remember writes a file atomically.
func remember(name string, content []byte) error {
	half := name + ".part"
	if err := os.WriteFile(half, content, 0o600); err != nil {
		return err
	}
	return os.Rename(half, name)
}

func (s *Scanners) fresh(ctx context.Context, tool Tool, program string, tree *Tree) (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "palisade-identity-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// Some tools make paths relative to the resolved name of the directory.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	if err := tree.Write(dir); err != nil {
		return nil, err
	}
	s.runs++
	return tool.run(ctx, program, dir)
}
