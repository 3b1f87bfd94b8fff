package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/findings/printout"
	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

func newFormatsTest(std streams) *cobra.Command {
	var mapping string
	var limit int
	cmd := &cobra.Command{
		Use:   "test FILE",
		Short: "Read a report without a server, and show its results",
		Long: `Read a report as the server would, and show its format, its first results, and what could not be read. Secrets are
redacted. Nothing is stored.

Exit status: 0 everything was read; 2 an error, or something could not be read.`,
		Example: `  palisade formats test trivy.json
  palisade formats test report.json --mapping acme-lint.yaml`,
		Args: exactlyOne("a report file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return usagef("--limit: got %d, want at least 0", limit)
			}
			return testFormat(cmd.Context(), std.out, args[0], mapping, limit)
		},
	}
	cmd.Flags().StringVar(&mapping, "mapping", "", "read the report by the mapping in this `file`")
	cmd.Flags().IntVar(&limit, "limit", 20, "maximum number of results that are shown; 0: all")
	return cmd
}

func testFormat(ctx context.Context, out io.Writer, file, mapping string, limit int) error {
	report, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = report.Close() }()
	limits := sarif.DefaultLimits()
	format, err := chooseFormat(ctx, report, mapping, limits)
	if err != nil {
		return fmt.Errorf("%s: %w", printable(file), err)
	}
	_, _ = fmt.Fprintf(out, "Format: %s (%s)\n", printable(format.Title), printable(format.Name))
	var source io.ReadSeeker = report
	var notes []*formats.Notes
	if format.Convert != nil {
		converted, err := os.CreateTemp("", "palisade-format-*")
		if err != nil {
			return err
		}
		defer func() { _ = errors.Join(converted.Close(), os.Remove(converted.Name())) }()
		if notes, err = formats.Convert(ctx, format, report, limits.Stream(), converted, io.Discard); err != nil {
			return fmt.Errorf("%s: %w", printable(file), err)
		}
		source = converted
	}
	opened, err := sarif.Open(ctx, source, limits)
	if err != nil {
		return fmt.Errorf("%s: %w", printable(file), err)
	}
	problems, err := printResults(ctx, out, opened, limit)
	if err != nil {
		return err
	}
	return printNotes(out, opened, notes, problems)
}

func chooseFormat(ctx context.Context, report io.ReadSeeker, mapping string, limits sarif.Limits) (formats.Format, error) {
	if mapping == "" {
		return formats.Detect(ctx, report, limits.Stream(), func() ([]formats.Format, error) { return nil, nil })
	}
	_, m, err := readMapping(mapping)
	if err != nil {
		return formats.Format{}, err
	}
	if found, err := formats.Detect(ctx, report, limits.Stream(), func() ([]formats.Format, error) { return []formats.Format{m.Format()}, nil }); err != nil {
		return found, fmt.Errorf("detect of the mapping does not match: %w", err)
	} else if found.Name != m.Name {
		return found, fmt.Errorf("it is recognised as %s, which is tried before mappings: upload it with --format %s, or use %s", found.Name, m.Name, found.Name)
	}
	return m.Format(), nil
}

// printResults prints the first results of a report, and returns the reasons of skipped ones.
func printResults(ctx context.Context, out io.Writer, report *sarif.Report, limit int) (problems []string, err error) {
	table, n := printout.NewTable(out), 0
	_, _ = fmt.Fprintln(table, "SEVERITY\tRULE\tPLACE\tMESSAGE")
	err = report.Results(ctx, func(r *sarif.Result) error {
		if n++; limit > 0 && n > limit {
			return nil
		}
		place := r.Path
		if place != "" {
			place = fmt.Sprintf("%s:%d", r.Path, r.Line)
		}
		message, _, _ := strings.Cut(r.Message, "\n")
		_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", r.Severity, printable(r.RuleID), printable(place), printable(jsonstream.Cut(message, 80)))
		return err
	}, func(skip sarif.Skip) error {
		problems = append(problems, fmt.Sprintf("result %d is not a finding: %s", skip.Index, skip.Reason))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := table.Flush(); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(out, "%s\n", english.Plural(n, "result", ""))
	return problems, err
}

// printNotes prints warnings and what could not be read, which is an error.
func printNotes(out io.Writer, report *sarif.Report, notes []*formats.Notes, problems []string) error {
	unreadable := 0
	for i, run := range report.Runs {
		if i < len(notes) {
			problems = append(problems, notes[i].Warnings...)
			for _, item := range notes[i].Unreadable {
				problems = append(problems, item.Pointer+" "+item.Reason)
			}
			unreadable += len(notes[i].Unreadable) + notes[i].Omitted
		}
		problems = append(problems, run.Warnings...)
	}
	for _, problem := range problems {
		_, _ = fmt.Fprintf(out, "warning: %s\n", printable(problem))
	}
	if unreadable > 0 {
		return fmt.Errorf("%d items could not be read; an upload of this report closes no finding", unreadable)
	}
	return nil
}
