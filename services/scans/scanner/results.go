package scanner

import (
	"context"
	"fmt"
	"io"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

const (
	// maxProblems is how many unusable findings are reported one by one.
	maxProblems = 20
	// maxName limits a path, a rule id or another name in bytes.
	maxName = 4096
	// lockfilePart is the maximal number of dependencies in one frame.
	lockfilePart = 1000
)

// Options configures how results are read.
type Options struct {
	Limits Limits
	// RedactionKey is the key of the hashes that replace secrets, so that different secrets stay distinguishable.
	RedactionKey []byte
	// SecretRules are the rules of the deployment that look for secrets, with their messages as written. The message of
	// a finding has code filled in.
	SecretRules map[string]string
}

// Summary is the outcome of reading results.
type Summary struct {
	Findings, Ignored int
	// Problems describes for people what could not be used. It never quotes the document.
	Problems []string
}

// results converts one document to frames.
type results struct {
	doc           *document
	options       Options
	emit          func(*storev1.ScannerFrame) error
	coverage      *storev1.ScannerCoverage
	coverageBytes int64          // bytes of coverage
	rules         map[string]int // the largest size of each
	ofRules       int64          // their sum
	summary       Summary
	unusable      int
}

// ReadResults reads the body of POST …/results. It passes findings, dependencies and, at the end, the coverage to emit.
// Unknown fields are skipped, and so is the field token, which has a credential. Errors are [SyntaxError],
// [LimitError], or errors of src and emit.
func ReadResults(ctx context.Context, src io.Reader, o Options, emit func(*storev1.ScannerFrame) error) (Summary, error) {
	r := &results{doc: newDocument(ctx, src, o.Limits), options: o, emit: emit, coverage: &storev1.ScannerCoverage{}, rules: map[string]int{}}
	if err := r.doc.root(r.member); err != nil {
		return Summary{}, err
	}
	if more := r.unusable - len(r.summary.Problems); more > 0 {
		r.summary.Problems = append(r.summary.Problems, fmt.Sprintf("%d more findings were left out", more))
	}
	return r.summary, emit(&storev1.ScannerFrame{Kind: &storev1.ScannerFrame_Coverage{Coverage: r.coverage}})
}

func (r *results) member(name string) error {
	switch name {
	case "findings":
		return r.findings(false)
	case "ignores":
		return r.findings(true)
	case "searched_paths":
		return r.paths(&r.coverage.SearchedPaths)
	case "renamed_paths":
		return r.paths(&r.coverage.RenamedPaths)
	case "skipped_paths":
		return r.paths(&r.coverage.SkippedPaths)
	case "rule_ids":
		return r.paths(&r.coverage.RuleIds)
	case "skipped_subprojects":
		return r.subprojects()
	case "dependencies":
		return lockfiles(r.doc, r.emit)
	default:
		return r.doc.skip()
	}
}

func (r *results) findings(ignored bool) error {
	return r.doc.array(func(i int) error {
		w := &wireFinding{}
		problem, err := r.doc.item(w)
		if err != nil {
			return err
		}
		if problem == "" {
			problem = w.unusable()
		}
		if problem != "" {
			if r.unusable++; len(r.summary.Problems) < maxProblems {
				r.summary.Problems = append(r.summary.Problems, fmt.Sprintf("finding %d was left out: %s", i, problem))
			}
			return nil
		}
		if ignored {
			r.summary.Ignored++
		} else {
			r.summary.Findings++
		}
		f := w.finding(r.options)
		f.Ignored = ignored
		if err := r.countRule(f); err != nil {
			return err
		}
		return r.emit(&storev1.ScannerFrame{Kind: &storev1.ScannerFrame_Finding{Finding: f}})
	})
}

// countRule counts the rule of a finding.
func (r *results) countRule(f *storev1.ScannerFinding) error {
	size, counted := len(f.GetCheckId())+len(f.GetMetadata()), r.rules[f.GetCheckId()]
	if size <= counted {
		return nil
	}
	r.rules[f.GetCheckId()] = size
	r.ofRules += int64(size - counted)
	limits := r.doc.limits
	switch {
	case len(r.rules) > limits.MaxRules:
		return &LimitError{fmt.Sprintf("findings name more than %d rules", limits.MaxRules)}
	case r.ofRules > limits.MaxRuleBytes:
		return &LimitError{fmt.Sprintf("the rules that findings name have more than %d bytes of ids and metadata", limits.MaxRuleBytes)}
	}
	return nil
}

// subprojects reads the subprojects with unknown dependencies: their names, or the paths that describe them.
func (r *results) subprojects() error {
	return r.doc.array(func(int) error {
		var value raw
		if problem, err := r.doc.item(&value); err != nil || problem != "" {
			return err
		}
		for _, path := range pathsIn(value) {
			if err := r.keep(&r.coverage.SkippedSubprojects, path); err != nil {
				return err
			}
		}
		return nil
	})
}

// paths reads a list of paths or of rule ids. Elements that are not strings are skipped.
func (r *results) paths(list *[]string) error {
	return r.doc.array(func(int) error {
		if r.doc.kind() != '"' {
			return r.doc.skip()
		}
		token, err := r.doc.token()
		if err != nil {
			return err
		}
		return r.keep(list, token.String())
	})
}

func (r *results) keep(list *[]string, path string) error {
	path = plain(path, maxName)
	if r.coverageBytes += int64(len(path)) + 16; r.coverageBytes > r.doc.limits.MaxPathBytes {
		return &LimitError{fmt.Sprintf("paths and rule ids have more than %d bytes", r.doc.limits.MaxPathBytes)}
	}
	if path != "" {
		*list = append(*list, path)
	}
	return nil
}
