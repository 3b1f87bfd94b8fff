package sarif

import (
	"context"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// Report is a report after the first pass: everything except the results, which [Report.Results] streams.
type Report struct {
	// Runs are all runs in file order, including rejected ones.
	Runs []*Run
	// Bytes is the size of the (decompressed) report.
	Bytes int64

	src     io.ReadSeeker
	limits  Limits
	options options
}

// Option changes how a report is read.
type Option func(*options)

type options struct {
	product      string
	redactionKey []byte
}

// WithProduct sets the product of all runs ([vocabulary.SAST], [vocabulary.SCA] or [vocabulary.Secrets]) instead of
// deriving it from the tool. vocabulary.Secrets turns redaction on. An empty product changes nothing.
func WithProduct(product string) Option { return func(o *options) { o.product = product } }

// WithRedactionKey makes redacted snippets distinguishable by a keyed hash (HMAC-SHA256) of the secret. A plain hash of
// a short password could be guessed. Without a key every secret becomes the same text.
func WithRedactionKey(key []byte) Option { return func(o *options) { o.redactionKey = key } }

// reader is the state of the first pass.
type reader struct {
	*stream
	report *Report
	base   int64 // offset of the decoder's start in the file: the length of a byte order mark
	meta   int64 // bytes of rules, taxonomies and artifacts kept so far, of all runs
}

// Open reads everything except the results of the report in src, checks its syntax to the end, and counts the results.
// src has to stay open and unchanged for [Report.Results]. It is read from its start, regardless of its current offset.
//
// The error is a [*SyntaxError], [*FormatError] or [*LimitError] if the report is at fault, otherwise an error of src
// or ctx.
func Open(ctx context.Context, src io.ReadSeeker, limits Limits, opts ...Option) (*Report, error) {
	report := &Report{src: src, limits: limits.withDefaults()}
	for _, opt := range opts {
		opt(&report.options)
	}
	base, err := sniff(src)
	if err != nil {
		return nil, err
	}
	if _, err := src.Seek(base, io.SeekStart); err != nil {
		return nil, fmt.Errorf("rewind the report: %w", err)
	}
	in := &meter{ctx: ctx, src: src, maxBytes: report.limits.MaxBytes, maxDepth: report.limits.MaxDepth, maxValues: report.limits.MaxValues}
	r := &reader{stream: newStream(in, report.limits), report: report, base: base}
	if err := r.document(); err != nil {
		return nil, locate(err, src, base, r.offset(), report.limits)
	}
	report.Bytes = base + in.read
	return report, nil
}

// document reads the top level. Version and runs are checked at the end, because keys come in any order.
func (r *reader) document() error {
	if k := r.kind(); k != '{' {
		if err := r.skip(); err != nil {
			return err
		}
		return &FormatError{"the top level is " + kindName(k) + ", want an object"}
	}
	version, runs := "missing", "missing"
	err := r.object(func(name string) error {
		switch name {
		case "version":
			return r.version(&version)
		case "runs":
			return r.runs(&runs)
		}
		return r.skip()
	})
	if err != nil {
		return err
	}
	if err := r.end(); err != nil {
		return err
	}
	switch {
	case runs == "missing" && version == "missing":
		return &FormatError{"it has neither version nor runs"}
	case version != "2.1.0":
		return &FormatError{"version is " + version + ", want 2.1.0"}
	case runs != "":
		return &FormatError{"runs is " + runs + ", want an array"}
	}
	return nil
}

func (r *reader) version(into *string) error {
	if k := r.kind(); k != '"' {
		*into = kindName(k)
		return r.skip()
	}
	token, err := r.token()
	if err == nil {
		*into = cut(clean(token.String()), 40)
	}
	return err
}

// runs reads the array of runs. problem is set to "" if it is an array.
func (r *reader) runs(problem *string) error {
	if k := r.kind(); k != '[' {
		*problem = kindName(k)
		return r.skip()
	}
	*problem = ""
	return r.array(func(int) error {
		if len(r.report.Runs) >= r.limits.MaxRuns {
			return &LimitError{What: "more runs than a report may have", Max: int64(r.limits.MaxRuns)}
		}
		return r.run(len(r.report.Runs))
	})
}

// end checks that nothing follows the document.
func (r *reader) end() error {
	r.allow(r.limits.MaxTokenBytes)
	_, err := r.dec.ReadToken()
	switch {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	}
	return &jsontext.SyntacticError{ByteOffset: r.offset(), Err: errTrailing}
}

// charge adds n bytes to the memory that the report keeps, and reports whether that is within the limit.
func (r *reader) charge(n int) bool {
	if r.meta+int64(n) > r.limits.MaxMetadataBytes {
		return false
	}
	r.meta += int64(n)
	return true
}
