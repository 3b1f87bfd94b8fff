package scans

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/palisade/palisade/ent"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// maxSkippedShown is how many skipped results an answer lists.
const maxSkippedShown = 1000

// openReport detects the format of a report, converts a report of another format to SARIF, and validates all of it. The
// caller has to close the source.
func openReport(ctx context.Context, db *ent.Client, file io.ReadSeeker, target *scansv1.UploadReportTarget, o UploadOptions) (*sarifSource, error) {
	limits := sarif.DefaultLimits()
	limits.MaxBytes = o.MaxBytes
	format, err := formatOf(ctx, db, file, target.GetFormat(), limits)
	if err != nil {
		return nil, err
	}
	return openAs(ctx, format, file, target, o)
}

// openAs is openReport for a report of a known format.
func openAs(ctx context.Context, format formats.Format, file io.ReadSeeker, target *scansv1.UploadReportTarget, o UploadOptions) (_ *sarifSource, err error) {
	limits := sarif.DefaultLimits()
	limits.MaxBytes = o.MaxBytes
	source := newSARIFSource(nil, target.GetCategory())
	source.format = format.Name
	if format.Convert != nil {
		if file, err = source.convert(ctx, format, file, limits, o); err != nil {
			return nil, errors.Join(err, source.close())
		}
	}
	source.report, err = sarif.Open(ctx, file, limits, sarif.WithProduct(target.GetProduct()), sarif.WithRedactionKey(o.RedactionKey),
		sarif.WithPlaces(givenPlaces(target)))
	if err != nil {
		return nil, errors.Join(source.refusal(err), source.close())
	}
	source.addNotes()
	return source, nil
}

// formatOf returns the format that the caller names, or detects it by the content.
func formatOf(ctx context.Context, db *ent.Client, file io.ReadSeeker, name string, limits sarif.Limits) (formats.Format, error) {
	if name == "" {
		format, err := formats.Detect(ctx, file, limits.Stream(), func() ([]formats.Format, error) { return mappings(ctx, db) })
		return format, (*sarifSource)(nil).refusal(err)
	}
	format, known := formats.Named(name)
	if known {
		return format, (*sarifSource)(nil).refusal(formats.Check(ctx, format, file, limits.Stream()))
	}
	mapped, err := mappings(ctx, db)
	if err != nil {
		return format, err
	}
	names := formats.Names()
	for _, format := range mapped {
		if format.Name == name {
			return format, nil
		}
		names = append(names, format.Name)
	}
	return format, apierr.InvalidArgument("format", "format %s is not known; allowed are %s", apierr.Quote(name), strings.Join(names, ", "))
}

// convert writes a report as SARIF to a file of its own.
func (s *sarifSource) convert(ctx context.Context, f formats.Format, file io.ReadSeeker, limits sarif.Limits, o UploadOptions) (io.ReadSeeker, error) {
	converted, err := o.Spool.Of(ctx).Receive("converted")
	if err != nil {
		return nil, err
	}
	s.converted = converted
	if s.facts, err = o.Spool.Of(ctx).Receive("facts"); err != nil {
		return nil, err
	}
	s.notes, err = formats.Convert(ctx, f, file, limits.Stream(), converted, s.facts)
	return converted, s.refusal(err)
}

// addNotes adds what the conversion says about each run.
func (s *sarifSource) addNotes() {
	for n, run := range s.report.Runs[:min(len(s.notes), len(s.report.Runs))] {
		run.Warnings = append(s.notes[n].Warnings, run.Warnings...)
		run.Succeeded = run.Succeeded && s.notes[n].Failure == ""
	}
}

// unreadable is the number of items of a run that the conversion could not use.
func (s *sarifSource) unreadable(run int) int {
	if run >= len(s.notes) {
		return 0
	}
	return len(s.notes[run].Unreadable) + s.notes[run].Omitted
}

// skippedItems lists the items that the conversion could not use.
func (s *sarifSource) skippedItems() (list []*scansv1.SkippedResult) {
	for run, notes := range s.notes {
		for _, item := range notes.Unreadable {
			list = append(list, &scansv1.SkippedResult{Run: int32(run), Index: int32(item.Index), Reason: item.Pointer + " " + item.Reason})
		}
	}
	return list
}

// factsOnly reports whether a run has no results but dependencies or decisions, so that it closes no finding.
func (s *sarifSource) factsOnly(run int) bool { return run < len(s.notes) && s.notes[run].FactsOnly }

// close removes the converted report.
func (s *sarifSource) close() (err error) {
	if s.converted != nil {
		err = s.converted.Close()
	}
	if s.facts != nil {
		err = errors.Join(err, s.facts.Close())
	}
	return err
}

// refusal converts errors in a report to API errors. It returns errors of the server unchanged.
func (*sarifSource) refusal(err error) error {
	var syntax *jsonstream.SyntaxError
	var text *jsonstream.FormatError
	var format *sarif.FormatError
	var unknown *formats.UnknownError
	var markup *formats.XMLError
	var limit *jsonstream.LimitError
	switch {
	case errors.As(err, &syntax), errors.As(err, &text), errors.As(err, &format), errors.As(err, &unknown),
		errors.As(err, &markup):
		return apierr.MalformedReport("%v", err)
	case errors.As(err, &limit):
		return apierr.TooLarge("%v", err)
	}
	return err
}
