// Package step defines the contract between the engine and the kinds of steps. The engine does not know what a step
// does; a kind does not know about graphs, retries and leases.
package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/palisade/palisade/ent"
)

// Kind is a kind of step (its "uses").
type Kind struct {
	// Name is unique: llm, http, findings.query, …
	Name string
	// Doc is one sentence for `palisade workflow lint` and the documentation.
	Doc string
	// Check rejects parameters with which the step can never work. Texts may still contain ${{ expressions }}.
	Check func(with map[string]any) error
	// Ready returns the error for starting a run with such a step if the server or the context's deployment lacks
	// something. Nil means that it needs nothing.
	Ready func(ctx context.Context, db *ent.Client) error
	// Run runs the step. It is nil for external steps: an internal service claims them.
	Run func(ctx context.Context, call Call) (Result, error)
}

// Call is one attempt of a task.
type Call struct {
	DeploymentID int64
	RunID        int64
	TaskID       int64
	// Attempt is its index, 0 for the first.
	Attempt  int32
	Workflow string
	Step     string
	// Path is the task's path of branches in the run. Step and Path are unique in the run and equal in all attempts.
	Path string
	// ProjectID is nil if the run is not about a single project.
	ProjectID *int64
	GitRef    string
	// TriggerSource is the run's trigger source.
	TriggerSource string
	// With holds the parameters after evaluation of expressions.
	With map[string]any
	// Artifact reads an artifact of an earlier task of the run, by task and name.
	Artifact func(ctx context.Context, taskID int64, name string) ([]byte, error)
}

// Result is the result of a step.
type Result struct {
	// Output is any JSON, at most [MaxOutput] bytes. Other steps read it as steps.<name>.output. Nil counts as null.
	Output json.RawMessage
	// Artifacts hold larger content that later tasks read by name.
	Artifacts []Artifact
	// CostUSD is the attempt's cost, including failed attempts.
	CostUSD float64
	// Commit is set by steps that fetch code. The report shows it.
	Commit string
}

// Artifact is a named piece of content.
type Artifact struct {
	Name    string
	Content []byte
}

// Limits of a step's result.
const (
	MaxOutput    = 1 << 20
	MaxArtifact  = 4 << 20
	MaxArtifacts = 64 << 20 // of one task in total
)

// permanent marks an error that a retry would not fix.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error as not retryable.
func Permanent(format string, args ...any) error { return permanent{fmt.Errorf(format, args...)} }

// IsPermanent reports whether an error was made by Permanent.
func IsPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}

// Registry holds the kinds by name.
type Registry map[string]Kind

// NewRegistry builds a registry. A duplicate name is a programming error.
func NewRegistry(kinds ...Kind) Registry {
	r := Registry{}
	for _, k := range kinds {
		if _, twice := r[k.Name]; twice {
			panic("two step kinds are called " + k.Name)
		}
		r[k.Name] = k
	}
	return r
}

// Names lists the kinds, sorted.
func (r Registry) Names() []string {
	names := make([]string, 0, len(r))
	for name := range r {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
