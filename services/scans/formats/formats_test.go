package formats_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/sarif"
)

// reports returns the reports of the golden imports, by file name.
func reports(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../testdata/formats/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no reports", err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		if all[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// noMappings stands for a deployment without formats of its own.
func noMappings() ([]formats.Format, error) { return nil, nil }

// TestOnlyOneFormatClaimsAReport compares each report with all formats: the order of the list must not decide, except
// that SARIF is last.
func TestOnlyOneFormatClaimsAReport(t *testing.T) {
	limits := sarif.DefaultLimits().Stream()
	for name, report := range reports(t) {
		claims, err := formats.Claims(context.Background(), bytes.NewReader(report), limits)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if last := len(claims) - 1; last > 0 && strings.HasPrefix(claims[0], "sarif-") {
			claims = claims[:last] // SARIF accepts earlier versions, to name what is wrong with them
		}
		if len(claims) != 1 {
			t.Errorf("%s is claimed by %v", name, claims)
			continue
		}
		found, err := formats.Detect(context.Background(), bytes.NewReader(report), limits, noMappings)
		if err != nil || found.Name != claims[0] {
			t.Errorf("%s is recognised as %s (%v), want %s", name, found.Name, err, claims[0])
		}
	}
}

// FuzzFormats checks for any bytes and each format: no panic, and a typed error or SARIF that can be read, with every
// result.
func FuzzFormats(f *testing.F) {
	for _, report := range reports(f) {
		f.Add(report)
	}
	for _, seed := range []string{
		`[{"Target":7,"Vulnerabilities":[null,{}]},3]`, `{"SchemaVersion":2,"ArtifactName":[],"Results":{"a":1}}`, `[]`, `{}`, `[[]]`, "7", "",
		`{"finding":{"osv":"a","trace":[]}}{"config":{}}[{"finding":null}]`, `{"results":[{"check_id":{},"extra":[]}],"errors":7,"paths":{"scanned":[1]}}`,
		`{"vulnerabilities":{"a":{"via":[7,{}],"fixAvailable":[]},"list":[{}]},"warnings":{"x":[{"kind":7}]},"auditReportVersion":2}`,
		`{"results":[{"packages":[{"groups":[{"ids":7}],"vulnerabilities":[{}]},null]}],"matches":[{"artifact":{"locations":7}}]}`,
	} {
		f.Add([]byte(seed))
	}
	limits := sarif.DefaultLimits()
	limits.MaxBytes, limits.MaxValues, limits.MaxResultBytes, limits.MaxTokenBytes = 1<<20, 100_000, 64<<10, 32<<10
	f.Fuzz(func(t *testing.T, report []byte) {
		ctx := context.Background()
		if _, err := formats.Detect(ctx, bytes.NewReader(report), limits.Stream(), noMappings); err != nil {
			typed(t, err)
		}
		for _, format := range formats.All {
			if format.Convert == nil {
				continue
			}
			var out bytes.Buffer
			notes, err := formats.Convert(ctx, format, bytes.NewReader(report), limits.Stream(), &out, io.Discard)
			if err != nil {
				typed(t, err)
				continue
			}
			results := 0
			converted, err := sarif.Open(ctx, bytes.NewReader(out.Bytes()), sarif.Limits{})
			if err != nil {
				t.Fatalf("%s: %v in %s", format.Name, err, out.Bytes())
			}
			if len(converted.Runs) != len(notes) {
				t.Fatalf("%s: %d runs, %d notes", format.Name, len(converted.Runs), len(notes))
			}
			err = converted.Results(ctx, func(*sarif.Result) error { results++; return nil }, func(s sarif.Skip) error {
				return nil // a path outside of the repository, for example
			})
			if err != nil {
				t.Fatalf("%s: %v", format.Name, err)
			}
			for _, run := range converted.Runs {
				if run.Rejected != "" {
					t.Fatalf("%s: rejected: %s", format.Name, run.Rejected)
				}
			}
		}
	})
}

// typed fails for an error that would be an internal error of the server.
func typed(t *testing.T, err error) {
	t.Helper()
	var syntax *jsonstream.SyntaxError
	var text *jsonstream.FormatError
	var limit *jsonstream.LimitError
	var unknown *formats.UnknownError
	var notXML *formats.XMLError
	if !errors.As(err, &notXML) && !errors.As(err, &syntax) && !errors.As(err, &text) && !errors.As(err, &limit) && !errors.As(err, &unknown) {
		t.Fatalf("untyped error %v", err)
	}
}

// repeated is a document of a head, one unit n times, and a tail, without a file.
type repeated struct {
	head, unit, tail string
	n, at            int64
}

func (r *repeated) size() int64 {
	return int64(len(r.head)) + r.n*int64(len(r.unit)) + int64(len(r.tail))
}

func (r *repeated) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekStart {
		return 0, errors.New("only from the start")
	}
	r.at = offset
	return offset, nil
}

func (r *repeated) Read(p []byte) (done int, err error) {
	for done < len(p) {
		part, at := "", r.at
		switch middle := r.n * int64(len(r.unit)); {
		case at < int64(len(r.head)):
			part = r.head[at:]
		case at < int64(len(r.head))+middle:
			part = r.unit[(at-int64(len(r.head)))%int64(len(r.unit)):]
		case at < r.size():
			part = r.tail[at-int64(len(r.head))-middle:]
		}
		if part == "" {
			break
		}
		n := copy(p[done:], part)
		done, r.at = done+n, r.at+int64(n)
	}
	if done == 0 {
		return 0, io.EOF
	}
	return done, nil
}
