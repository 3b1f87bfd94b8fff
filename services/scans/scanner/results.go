package scanner

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

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
	// Commit is the scanned commit, if it is known.
	Commit string
}

// Summary is the outcome of reading results.
type Summary struct {
	Findings, Ignored int
	// Problems describes for people what could not be used. It never quotes the document.
	Problems []string
	// CommitTime is when the scanned commit was made; zero if unknown.
	CommitTime time.Time
}

// results converts one document to frames.
type results struct {
	doc        *document
	options    Options
	emit       func(*storev1.ScannerFrame) error
	coverage   *storev1.ScannerCoverage
	incomplete *incomplete    // counts the bytes of the coverage
	rules      map[string]int // the largest size of each
	ofRules    int64          // their sum
	summary    Summary
	unusable   int
}

// ReadResults reads the body of POST …/results. It passes findings, dependencies and, at the end, the coverage to emit.
// Unknown fields are skipped, and so is the field token, which has a credential. Errors are [SyntaxError],
// [LimitError], or errors of src and emit.
func ReadResults(ctx context.Context, src io.Reader, o Options, emit func(*storev1.ScannerFrame) error) (Summary, error) {
	r := &results{doc: newDocument(ctx, src, o.Limits), options: o, emit: emit, coverage: &storev1.ScannerCoverage{}, rules: map[string]int{}}
	r.incomplete = &incomplete{doc: r.doc, coverage: r.coverage}
	found := false
	err := r.doc.root(func(name string) error {
		found = found || name == "findings"
		return r.member(name)
	})
	if err != nil {
		return Summary{}, err
	}
	if !found {
		r.incomplete.unreadable("findings")
	}
	if more := r.unusable - len(r.summary.Problems); more > 0 {
		r.summary.Problems = append(r.summary.Problems, fmt.Sprintf("%d more findings were left out", more))
	}
	return r.summary, emit(&storev1.ScannerFrame{Kind: &storev1.ScannerFrame_Coverage{Coverage: r.coverage}})
}

func (r *results) member(name string) error {
	switch name {
	case "findings", "ignores":
		if r.doc.kind() != '[' {
			r.incomplete.unreadable(name)
		}
		return r.findings(name == "ignores")
	case "searched_paths":
		if r.doc.kind() != '[' {
			r.incomplete.unreadable(name)
		}
		return r.paths(&r.coverage.SearchedPaths, func() {}) // a file without a name counts as not searched
	case "renamed_paths":
		return r.paths(&r.coverage.RenamedPaths, func() {})
	case "skipped_paths":
		return r.incomplete.skipped()
	case "rule_ids": // an empty list closes nothing
		return r.paths(&r.coverage.RuleIds, func() { r.incomplete.unreadable(name) })
	case "skipped_subprojects":
		return r.incomplete.subprojects()
	case "contributions":
		return r.contributions()
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

// contributions reads the commits of the last weeks, and keeps the time of the scanned one. It has a zone, unlike the
// time that opens a scan.
func (r *results) contributions() error {
	return r.doc.array(func(int) error {
		var w struct {
			Commit text `json:"commit_hash"`
			At     text `json:"commit_timestamp"`
		}
		if _, err := r.doc.item(&w); err != nil {
			return err
		}
		if r.options.Commit != "" && string(w.Commit) == r.options.Commit {
			r.summary.CommitTime = CommitTime(string(w.At))
		}
		return nil
	})
}

// CommitTime reads the time of a commit. Without a zone it is taken for UTC, which most CI runners use. The result is
// zero for anything else.
func CommitTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, strings.Replace(text, " ", "T", 1)); err == nil {
			return at
		}
	}
	return time.Time{}
}

// paths reads a list of paths or of rule ids. Elements that are not strings are skipped and passed to odd.
func (r *results) paths(list *[]string, odd func()) error {
	return r.doc.array(func(int) error {
		if r.doc.kind() != '"' {
			odd()
			return r.doc.skip()
		}
		token, err := r.doc.token()
		if err != nil {
			return err
		}
		return r.keep(list, token.String())
	})
}

func (r *results) keep(list *[]string, path string) error { return r.incomplete.keep(list, path) }
