package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/issues"
	"github.com/palisade/palisade/services/workflows/step"
)

const (
	// maxIssues is the maximum number of results of one step: they are stored in one transaction.
	maxIssues = 5000
	// maxCovered is the maximum number of paths that one step can report as covered.
	maxCovered = 100_000
)

// upsertParameters are the parameters of issue.upsert.
type upsertParameters struct {
	// Issues are the results. Lists of lists, as joins produce them, are flattened.
	Issues flat[found] `json:"issues"`
	// Files are the examined paths. Absent means the whole project.
	Files flat[string] `json:"files"`
}

func (p upsertParameters) problem(open map[string]bool) string {
	switch {
	case p.Issues == nil && !open["issues"]:
		return "issues is missing: a list of {title, class, file, evidence, severity, …}"
	case len(p.Issues) > maxIssues:
		return fmt.Sprintf("issues must be at most %d, got %d", maxIssues, len(p.Issues))
	case len(p.Files) > maxCovered:
		return fmt.Sprintf("files must be at most %d, got %d", maxCovered, len(p.Files))
	}
	for i, f := range p.Issues {
		if problem := f.problem(); problem != "" {
			return fmt.Sprintf("issues[%d].%s", i, problem)
		}
	}
	return ""
}

// upsertIssues stores results of earlier steps as agentic-workflow issues.
func upsertIssues(st *store.Store) step.Kind {
	return step.Kind{
		Name: "issue.upsert", Doc: "Stores what was found as agentic-workflow issues; the same issue in another run is the same.",
		Check: checked[upsertParameters](),
		Run: func(ctx context.Context, call step.Call) (step.Result, error) {
			p, err := decodeParameters[upsertParameters](call)
			if err != nil {
				return step.Result{}, err
			}
			list := make([]issues.Found, len(p.Issues))
			for i, f := range p.Issues {
				list[i] = issues.Found(f)
			}
			var counts issues.Counts
			err = st.Write(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
				counts, err = issues.Upsert(ctx, tx, call, list, p.Files)
				return err
			})
			if err != nil {
				return step.Result{}, storeError("the issues could not be stored", err)
			}
			return output(counts)
		},
	}
}

// found is one result in a workflow's JSON. Unknown fields are ignored.
type found issues.Found

// listFields are the list fields of a result. A single value may stand for a list of one.
var listFields = []string{"cwes", "owasps", "actions", "identities", "dependencyPaths", "directDependencies", "domains"}

// UnmarshalJSON reads a result.
func (f *found) UnmarshalJSON(text []byte) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return errors.New("each of issues must be an object")
	}
	for _, name := range listFields {
		if value := fields[name]; len(value) > 0 && value[0] == '"' {
			fields[name] = slices.Concat([]byte("["), value, []byte("]"))
		}
	}
	for _, name := range []string{"startLine", "endLine"} {
		// A number that is not a valid line means an unknown line: a model's output is unreliable, and the result must be
		// stored.
		var line float64
		if json.Unmarshal(fields[name], &line) == nil && (line != math.Trunc(line) || math.Abs(line) > math.MaxInt32) {
			delete(fields, name)
		}
	}
	plain, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	err = json.Unmarshal(plain, (*issues.Found)(f))
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		return fmt.Errorf("%s of an issue must be %s, got %s", mistyped.Field, typeName(mistyped.Type), mistyped.Value)
	}
	f.Severity, f.Verified = strings.ToLower(strings.TrimSpace(f.Severity)), strings.ToLower(strings.TrimSpace(f.Verified))
	return err
}

func (f found) problem() string {
	switch {
	case strings.TrimSpace(f.Title) == "" && strings.TrimSpace(f.Evidence) == "":
		return "title is missing"
	case strings.TrimSpace(f.Title) == "" && (f.Vulnerable == nil || *f.Vulnerable):
		return "title is missing"
	case f.Severity != "" && !slices.Contains(issues.Severities, f.Severity):
		return fmt.Sprintf("severity must be one of %s", strings.Join(issues.Severities, ", "))
	case f.Verified != "" && f.Verified != issues.VerifiedPresent && f.Verified != issues.VerifiedAbsent:
		return fmt.Sprintf("verified must be %s or %s", issues.VerifiedPresent, issues.VerifiedAbsent)
	}
	return ""
}

// flat is a list that may be given as a nested list with nulls, as the branches of a join produce it.
type flat[T any] []T

// UnmarshalJSON reads it. An empty list differs from an absent one.
func (l *flat[T]) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil {
		return errors.New("issues and files must be lists")
	}
	if *l == nil {
		*l = flat[T]{}
	}
	for _, item := range items {
		if len(item) > 0 && item[0] == '[' {
			if err := l.UnmarshalJSON(item); err != nil {
				return err
			}
			continue
		}
		if string(item) == "null" {
			continue
		}
		var value T
		if err := json.Unmarshal(item, &value); err != nil {
			return err
		}
		*l = append(*l, value)
	}
	return nil
}

// internalError is an error with a cause for the log only.
type internalError struct {
	text  string
	cause error
}

// Error implements error.
func (e internalError) Error() string { return e.text }

// Unwrap returns the cause.
func (e internalError) Unwrap() error { return e.cause }

// storeError keeps database errors out of the run. A step's own error text stays.
func storeError(text string, err error) error {
	if step.IsPermanent(err) {
		return err
	}
	return internalError{text, err}
}
