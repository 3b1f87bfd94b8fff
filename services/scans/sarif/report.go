package sarif

import (
	"context"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/places"
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
	places       places.Given
	product      string
	redactionKey []byte
}

// WithProduct sets the product of all runs, one of [vocabulary.Products], instead of reading it from the run or
// deriving it from the tool. vocabulary.Secrets turns redaction on. An empty product changes nothing.
func WithProduct(product string) Option { return func(o *options) { o.product = product } }

// WithPlaces says what the caller knows about the paths in the report.
func WithPlaces(given places.Given) Option { return func(o *options) { o.places = given } }

// WithRedactionKey makes redacted snippets distinguishable by a keyed hash (HMAC-SHA256) of the secret. A plain hash of
// a short password could be guessed. Without a key every secret becomes the same text.
func WithRedactionKey(key []byte) Option { return func(o *options) { o.redactionKey = key } }

// reader is the state of the first pass.
type reader struct {
	*jsonstream.Stream
	report *Report
	limits Limits
	meta   int64 // bytes of rules, taxonomies and artifacts kept so far, of all runs
	inline []*inlinePart
}

// Open reads everything except the results of the report in src, checks its syntax to the end, and counts the results.
// src has to stay open and unchanged for [Report.Results]. It is read from its start, regardless of its current offset.
//
// The error is a [*jsonstream.SyntaxError], [*FormatError] or [*jsonstream.LimitError] if the report is at fault,
// otherwise an error of src or ctx.
func Open(ctx context.Context, src io.ReadSeeker, limits Limits, opts ...Option) (*Report, error) {
	report := &Report{src: src, limits: limits.withDefaults()}
	for _, opt := range opts {
		opt(&report.options)
	}
	stream, err := jsonstream.Open(ctx, src, report.limits.Stream())
	var format *jsonstream.FormatError
	if errors.As(err, &format) {
		return nil, &FormatError{format.Reason}
	}
	if err != nil {
		return nil, err
	}
	r := &reader{Stream: stream, report: report, limits: report.limits}
	if err := r.document(); err != nil {
		return nil, stream.Locate(err)
	}
	report.Bytes = stream.Bytes()
	return report, nil
}

// document reads the top level. Version and runs are checked at the end, because keys come in any order.
func (r *reader) document() error {
	if k := r.Kind(); k != '{' {
		if err := r.Skip(); err != nil {
			return err
		}
		return &FormatError{"the top level is " + jsonstream.KindName(k) + ", want an object"}
	}
	version, schema, runs := "missing", "", "missing"
	err := r.Object(func(name string) error {
		switch name {
		case "version":
			return r.version(&version)
		case "$schema":
			return r.version(&schema)
		case "runs":
			return r.runs(&runs)
		case "inlineExternalProperties":
			return r.inlineParts()
		}
		return r.Skip()
	})
	if err != nil {
		return err
	}
	if err := r.End(); err != nil {
		return err
	}
	switch {
	case runs == "missing" && version == "missing":
		return &FormatError{"it has neither version nor runs"}
	case !isVersion(version, schema):
		return &FormatError{"version is " + version + ", want 2.1.0"}
	case runs != "":
		return &FormatError{"runs is " + runs + ", want an array"}
	}
	r.joinInline()
	for _, run := range r.report.Runs {
		run.finish(r.report.options)
	}
	return nil
}

// isVersion reports whether a version is SARIF 2.1: 2.1.0, a draft after the last incompatible one such as
// 2.1.0-rtm.5, or none if the schema says so.
func isVersion(version, schema string) bool {
	if version == "missing" || version == "null" {
		return schema21.MatchString(schema)
	}
	return version == "2.1" || version == "2.1.0" || strings.HasPrefix(version, "2.1.0-")
}

var schema21 = regexp.MustCompile(`sarif.*2\.1\.0`)

// version reads a short text at the top of the report.
func (r *reader) version(into *string) error {
	if k := r.Kind(); k != '"' {
		*into = jsonstream.KindName(k)
		return r.Skip()
	}
	token, err := r.Token()
	if err == nil {
		*into = jsonstream.Cut(jsonstream.Clean(token.String()), 200)
	}
	return err
}

// runs reads the array of runs, or a single one. problem is set to "" if it is one of these.
func (r *reader) runs(problem *string) error {
	switch k := r.Kind(); k {
	case '[':
		*problem = ""
		return r.Array(func(int) error { return r.nextRun() })
	case '{':
		*problem = ""
		n := len(r.report.Runs)
		err := r.nextRun()
		if n < len(r.report.Runs) {
			r.report.Runs[n].notes.add(r.here(), "is an object, want an array: it is read as one run", true)
		}
		return err
	default:
		*problem = jsonstream.KindName(k)
		return r.Skip()
	}
}

func (r *reader) nextRun() error {
	if len(r.report.Runs) >= r.limits.MaxRuns {
		return &jsonstream.LimitError{What: "more runs than a report may have", Max: int64(r.limits.MaxRuns)}
	}
	return r.run(len(r.report.Runs))
}

// charge adds n bytes to the memory that the report keeps, and reports whether that is within the limit.
func (r *reader) charge(n int) bool {
	if r.meta+int64(n) > r.limits.MaxMetadataBytes {
		return false
	}
	r.meta += int64(n)
	return true
}
