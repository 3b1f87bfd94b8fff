// Package step is what steps of workflows do: the contract between the engine, which knows nothing of what a step does,
// and the kinds of steps, which know nothing of graphs, retries and leases.
package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Kind is what a step can be told to do (its "uses").
type Kind struct {
	// Name is unique: llm, http, findings.query, …
	Name string
	// Doc is one sentence for `palisade workflow lint` and the documentation.
	Doc string
	// Check refuses parameters with which the step can never work. Texts may still hold ${{ expressions }}.
	Check func(with map[string]any) error
	// Ready refuses, with the error of a call, to start runs that have such a step while the server lacks what it needs.
	// Nil: it needs nothing.
	Ready func() error
	// Run does the step. It is nil for external steps: an internal service claims them.
	Run func(ctx context.Context, call Call) (Result, error)
}

// Call is one attempt at one task.
type Call struct {
	DeploymentID int64
	RunID        int64
	TaskID       int64
	// Attempt is its index, 0 for the first.
	Attempt  int32
	Workflow string
	Step     string
	// Path is the task's place among the branches of the run: with Step it is unique in the run and the same in every
	// attempt.
	Path string
	// ProjectID is nil when the run is about no single project.
	ProjectID *int64
	GitRef    string
	// TriggerSource is that of the run.
	TriggerSource string
	// With holds the parameters, expressions evaluated.
	With map[string]any
	// Artifact reads what an earlier task of the same run left, by task and name.
	Artifact func(ctx context.Context, taskID int64, name string) ([]byte, error)
}

// Result is what a step brings.
type Result struct {
	// Output is any JSON, at most [MaxOutput] bytes: other steps see it as steps.<name>.output. Nil counts as null.
	Output json.RawMessage
	// Artifacts are larger things, readable by later tasks through their names.
	Artifacts []Artifact
	// CostUSD is what the attempt cost, also when it failed.
	CostUSD float64
	// Commit is set by steps that fetch code: the report names it.
	Commit string
}

// Artifact is a named piece of content.
type Artifact struct {
	Name    string
	Content []byte
}

// Limits of what a step brings.
const (
	MaxOutput    = 1 << 20
	MaxArtifact  = 4 << 20
	MaxArtifacts = 64 << 20 // of one task together
)

// permanent marks an error that a second attempt would meet again.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent says that trying again is of no use.
func Permanent(format string, args ...any) error { return permanent{fmt.Errorf(format, args...)} }

// IsPermanent reports whether an error was made by Permanent.
func IsPermanent(err error) bool {
	var p permanent
	return errors.As(err, &p)
}

// Registry holds the kinds by name.
type Registry map[string]Kind

// NewRegistry makes a registry; two kinds of one name are a programmer's mistake.
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
