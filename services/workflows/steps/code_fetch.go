package steps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/workflows/codeunit"
	"github.com/palisade/palisade/services/workflows/step"
)

// Limits of fetched code, in bytes.
const (
	defaultFileBytes = 256 << 10
	maxFileBytes     = 1 << 20
	defaultCode      = 8 << 20
	maxCode          = 32 << 20
	defaultUnit      = 48 << 10
	minUnit          = 4 << 10
	maxUnit          = 256 << 10
)

// fetchParameters are the parameters of code.fetch.
type fetchParameters struct {
	// Ref is a branch, a tag, a full ref or a commit. The default is the run's ref, then the project's primary branch,
	// then the repository's default branch.
	Ref string `json:"ref"`
	// Include and Exclude are globs; see fileSet.
	Include words `json:"include"`
	Exclude words `json:"exclude"`
	// MaxFileBytes is the maximum size of a file; larger files are skipped. MaxBytes is the limit for all files together.
	MaxFileBytes int64 `json:"maxFileBytes"`
	MaxBytes     int64 `json:"maxBytes"`
	// UnitBytes is the size of the units that the files are divided into.
	UnitBytes int64 `json:"unitBytes"`
}

func (p fetchParameters) problem(map[string]bool) string {
	for _, bound := range []struct {
		name              string
		got               int64
		least, most, none int64
	}{
		{"maxFileBytes", p.MaxFileBytes, 1, maxFileBytes, defaultFileBytes},
		{"maxBytes", p.MaxBytes, 1, maxCode, defaultCode},
		{"unitBytes", p.UnitBytes, minUnit, maxUnit, defaultUnit},
	} {
		if bound.got != 0 && (bound.got < bound.least || bound.got > bound.most) {
			return fmt.Sprintf("%s must be %d to %d, or 0 for %d; got %d", bound.name, bound.least, bound.most, bound.none, bound.got)
		}
	}
	_, err := newFileSet(p.Include, p.Exclude)
	if err != nil {
		return err.Error()
	}
	return ""
}

// withDefaults fills in defaults.
func (p fetchParameters) withDefaults() fetchParameters {
	for _, field := range []struct {
		value *int64
		other int64
	}{{&p.MaxFileBytes, defaultFileBytes}, {&p.MaxBytes, defaultCode}, {&p.UnitBytes, defaultUnit}} {
		if *field.value == 0 {
			*field.value = field.other
		}
	}
	return p
}

// fetched is the output.
type fetched struct {
	Commit string `json:"commit"`
	Ref    string `json:"ref"`
	// Files counts the selected files that were read, Skipped the selected files that were not.
	Files   int `json:"files"`
	Skipped int `json:"skipped"`
	// SkippedBecause counts skipped files by reason: large, binary, long_lines, path, budget (maxBytes was reached).
	SkippedBecause map[string]int `json:"skippedBecause"`
	Units          []fetchedUnit  `json:"units"`
}

// fetchedUnit names the artifact with the text of a unit.
type fetchedUnit struct {
	Index    int      `json:"index"`
	TaskID   int64    `json:"taskId"`
	Artifact string   `json:"artifact"`
	Files    []string `json:"files"`
	Bytes    int      `json:"bytes"`
}

// fetch reads the code of the run's project.
func fetch(n Needs) step.Kind {
	return step.Kind{
		Name: "code.fetch", Doc: "Fetches the project's code at a ref and divides it into units: {commit, ref, files, skipped, units: [{index, taskId, artifact, files, bytes}]}.",
		Check: checked[fetchParameters](),
		Ready: connected,
		Run: func(ctx context.Context, call step.Call) (step.Result, error) {
			p, err := decodeParameters[fetchParameters](call)
			if err != nil {
				return step.Result{}, err
			}
			if call.ProjectID == nil {
				return step.Result{}, step.Permanent("the run is about no single project: start it with a repository")
			}
			result, err := n.fetch(tenant.NewContext(ctx, call.DeploymentID), call, p.withDefaults())
			var failed *clone.Error
			switch {
			case errors.As(err, &failed) && failed.Permanent:
				return step.Result{}, step.Permanent("%w", err)
			case ent.IsNotFound(err):
				return step.Result{}, step.Permanent("project %d does not exist", *call.ProjectID)
			case err != nil && failed == nil:
				return step.Result{}, storeError("the code could not be fetched", err)
			}
			return result, err
		},
	}
}

// connected refuses runs in a deployment without any connection: code is read through connections only.
func connected(ctx context.Context, db *ent.Client) error {
	any, err := db.ScmConfig.Query().Exist(ctx)
	if err == nil && !any {
		err = apierr.FailedPrecondition("no source-code host is connected, so no code can be read: connect one")
	}
	return err
}

func (n Needs) fetch(ctx context.Context, call step.Call, p fetchParameters) (step.Result, error) {
	source, err := n.Repository(ctx, *call.ProjectID)
	if err != nil {
		return step.Result{}, err
	}
	ref, err := n.ref(ctx, call, p)
	if err != nil {
		return step.Result{}, err
	}
	checkout, err := clone.Fetch(ctx, n.Egress, source, ref, filepath.Join(n.Dir, "checkouts"), clone.Limits{File: p.MaxFileBytes})
	if err != nil {
		return step.Result{}, err
	}
	defer func() { _ = checkout.Close() }()
	set, err := newFileSet(p.Include, p.Exclude)
	if err != nil {
		return step.Result{}, step.Permanent("%w", err)
	}
	r := reader{parameters: p, set: set, skipped: map[string]int{}}
	if err := checkout.Files(ctx, func(f clone.File) error { return r.read(ctx, f) }); err != nil {
		return step.Result{}, err
	}
	result, err := r.result(call, checkout)
	result.Commit = checkout.Commit
	return result, err
}

// ref returns the ref to fetch; "" is the repository's default branch.
func (n Needs) ref(ctx context.Context, call step.Call, p fetchParameters) (string, error) {
	if p.Ref != "" {
		return p.Ref, nil
	}
	if call.GitRef != "" {
		return call.GitRef, nil
	}
	row, err := n.Store.Reader.Project.Query().Where(project.DeploymentID(call.DeploymentID), project.ID(*call.ProjectID)).
		Select(project.FieldPrimaryBranch).Only(ctx)
	if err != nil {
		return "", err
	}
	return row.PrimaryBranch, nil
}

// reader selects files and reads them.
type reader struct {
	parameters fetchParameters
	set        fileSet
	files      []codeunit.File
	bytes      int64
	skipped    map[string]int
}

// maxFiles limits the files that one step keeps in memory: a few small trees that refer to each other can expand to a
// million files. The result would be too large in any case.
const maxFiles = 50_000

func tooManyFiles(n int) error {
	return step.Permanent("the repository has too many files (%d) for one run: choose some with include, or leave some out with exclude", n)
}

func (r *reader) read(ctx context.Context, f clone.File) error {
	chosen, err := r.set.matches(f.Path)
	if err != nil || !chosen {
		return err
	}
	if len(r.files) == maxFiles {
		return tooManyFiles(maxFiles)
	}
	switch {
	case !isSafePath(f.Path):
		r.skipped["path"]++
		return nil
	case f.Size < 0 || f.Size > r.parameters.MaxFileBytes:
		r.skipped["large"]++
		return nil
	case r.bytes+f.Size > r.parameters.MaxBytes:
		r.skipped["budget"]++
		return nil
	}
	content, err := f.Content(ctx)
	if err != nil {
		return err
	}
	if bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) {
		r.skipped["binary"]++
		return nil
	}
	for line := range bytes.Lines(content) {
		// Generated code: it would make a unit that no prompt can hold. A unit also has a heading and line numbers.
		if int64(len(line)+len(f.Path)+100) > r.parameters.UnitBytes {
			r.skipped["long_lines"]++
			return nil
		}
	}
	r.bytes += f.Size
	r.files = append(r.files, codeunit.File{Path: f.Path, Content: content})
	return nil
}

// isSafePath rejects paths that could be mistaken for other text.
func isSafePath(path string) bool {
	return utf8.ValidString(path) && !strings.ContainsFunc(path, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
}

func (r *reader) result(call step.Call, checkout *clone.Checkout) (step.Result, error) {
	out := fetched{Commit: checkout.Commit, Ref: checkout.Ref, Files: len(r.files), SkippedBecause: r.skipped, Units: []fetchedUnit{}}
	for _, n := range r.skipped {
		out.Skipped += n
	}
	var artifacts []step.Artifact
	for i, unit := range codeunit.Split(r.files, int(r.parameters.UnitBytes)) {
		name := fmt.Sprintf("unit-%05d", i)
		artifacts = append(artifacts, step.Artifact{Name: name, Content: unit.Text})
		out.Units = append(out.Units, fetchedUnit{Index: i, TaskID: call.TaskID, Artifact: name, Files: unit.Files, Bytes: len(unit.Text)})
	}
	result, err := output(out)
	if err != nil {
		return result, err
	}
	if len(result.Output) > step.MaxOutput {
		return step.Result{}, tooManyFiles(len(r.files))
	}
	result.Artifacts = artifacts
	return result, nil
}
