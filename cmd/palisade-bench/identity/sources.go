package identity

import (
	"context"
	"fmt"
	"path/filepath"
)

// recorded are prerecorded reports about known code.
var recorded = []struct{ name, file, module, version string }{
	{"gosec, pocketbase", "gosec.sarif", "github.com/pocketbase/pocketbase", "v0.22.8"},
	{"staticcheck, grpc-gateway", "staticcheck.sarif", "github.com/grpc-ecosystem/grpc-gateway", "v1.16.0"},
}

// live are modules that a scanner scans before and after each edit.
var live = []struct {
	name            string
	tool            Tool
	module, version string
}{
	{"staticcheck, regexp2", Staticcheck, "github.com/dlclark/regexp2", "v1.11.0"},
	{"staticcheck, gods", Staticcheck, "github.com/emirpasic/gods", "v1.18.1"},
	{"gosec, websocket", Gosec, "github.com/gorilla/websocket", "v1.5.3"},
}

// eslintRoot is the directory in the recorded ESLint report.
const eslintRoot = "file:///builds/ci/npm/jsproj/"

// Sources fetches the code and the reports. Recorded reports are in the directory reports.
func Sources(ctx context.Context, scanners *Scanners, reports string) ([]*Source, error) {
	var list []*Source
	for _, r := range recorded {
		source, err := recordedSource(ctx, scanners, filepath.Join(reports, r.file), r.name, r.module, r.version)
		if err != nil {
			return nil, err
		}
		list = append(list, source)
	}
	eslint, err := unknownSource(filepath.Join(reports, "eslint.sarif"))
	if err != nil {
		return nil, err
	}
	list = append(list, eslint)
	for _, l := range live {
		source, err := liveSource(ctx, scanners, l.tool, l.name, l.module, l.version)
		if err != nil {
			return nil, err
		}
		list = append(list, source)
	}
	staticcheck := list[1]
	hashed := staticcheck.with("line hashes", withLineHashes)
	hashed.ahead = true
	return append(list, streamed(list[0]), streamed(list[3]), staticcheck.with("instance ids", withInstances), hashed, staticcheck.with("functions", withFunctions), dockerfiles()), nil
}

func recordedSource(ctx context.Context, scanners *Scanners, file, name, module, version string) (*Source, error) {
	report, err := LoadReport(file, "")
	if err != nil {
		return nil, err
	}
	tree, err := moduleTree(ctx, scanners, module, version)
	if err != nil {
		return nil, err
	}
	for i, result := range report.Results {
		if lines, there := tree.Files[result.File]; !there || result.Line > len(lines) {
			return nil, fmt.Errorf("%s: result %d is at %s:%d, which is not in %s@%s", file, i, result.File, result.Line, module, version)
		}
	}
	return &Source{Name: name, Tree: tree, Report: report}, nil
}

func moduleTree(ctx context.Context, scanners *Scanners, module, version string) (*Tree, error) {
	dir, err := scanners.Module(ctx, module, version)
	if err != nil {
		return nil, err
	}
	return LoadModule(dir, module)
}

// unknownSource is the ESLint report: it quotes no code, so the locations alone determine the report after an edit.
func unknownSource(file string) (*Source, error) {
	report, err := LoadReport(file, eslintRoot)
	if err != nil {
		return nil, err
	}
	// The report says that the run failed, because of a configuration error, and a failed run closes nothing.
	report.run["invocations"] = []any{object{"executionSuccessful": true}}
	lines := map[string]int{}
	for _, result := range report.Results {
		lines[result.File] = max(lines[result.File], result.Line+20, result.EndLine+20)
	}
	return &Source{Name: "eslint, express and others", Tree: UnknownCode(lines), Report: report, Lists: true}, nil
}

func liveSource(ctx context.Context, scanners *Scanners, tool Tool, name, module, version string) (*Source, error) {
	tree, err := moduleTree(ctx, scanners, module, version)
	if err != nil {
		return nil, err
	}
	scan := func(ctx context.Context, tree *Tree) (*Report, error) { return scanners.Scan(ctx, tool, tree) }
	report, err := scan(ctx, tree)
	if err != nil {
		return nil, err
	}
	return &Source{Name: name, Tree: tree, Report: report, Scan: scan}, nil
}

// streamed is a source with results from the scanner protocol.
func streamed(s *Source) *Source {
	variant := *s
	variant.Name, variant.Protocol = "protocol: "+s.Name, true
	return &variant
}
