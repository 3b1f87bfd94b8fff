package formats

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// Format is a report format.
type Format struct {
	// Name is the name in answers and parameters, such as "trivy-json". Title is its name in texts for people.
	Name, Title string
	// Recognises reports whether a document is of this format, by its content.
	Recognises func(*Outline) bool
	// Convert reads a document and writes its results. It is nil for SARIF 2.1.0, which needs no conversion.
	Convert func(*Input, *Writer) error
}

// SARIF is SARIF 2.1.0. It is recognised by "runs", which its schema requires.
var SARIF = Format{Name: "sarif", Title: "SARIF 2.1.0", Recognises: func(o *Outline) bool {
	return o.Has("runs") || strings.Contains(strings.ToLower(o.Value("$schema")), "sarif")
}}

// All are the formats, in the order in which a document is compared with them. To add a format, write its file and add
// a line here; CONTRIBUTING.md has the recipe.
var All = []Format{
	trivyJSON,
	cycloneDX,
	cycloneDXML,
	spdx,
	openVEX,
	csaf,
	sarif10,
	sarif20,
	banditJSON,
	brakemanJSON,
	checkovJSON,
	defectDojo,
	eslintJSON,
	sonarGeneric,
	zapJSON,
	zapXML,
	grypeJSON,
	gitlabReport,
	govulncheckJSON,
	npmAudit,
	pnpmAudit,
	cargoAudit,
	pipAudit,
	osvScanner,
	gitleaksJSON,
	detectSecrets,
	trufflehogJSON,
	semgrepJSON,
	SARIF,
}

// Named returns the format with a name.
func Named(name string) (Format, bool) {
	for _, f := range All {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}

// Check returns an error if a document cannot be of a format that the caller names. An empty list is of any format
// whose reports are lists: that is why callers name the format.
func Check(ctx context.Context, f Format, src io.ReadSeeker, limits jsonstream.Limits) error {
	_, found, outline, err := recognise(ctx, src, limits, []Format{f})
	if err != nil || found || outline.empty() {
		return err
	}
	return &UnknownError{fmt.Sprintf("the report is not %s, although the parameter format says so: %s", f.Title, explain(outline))}
}

// Names returns the names of all formats.
func Names() (names []string) {
	for _, f := range All {
		names = append(names, f.Name)
	}
	return names
}

// UnknownError says that a document is of no known format, what it looks like, and what to do.
type UnknownError struct{ Text string }

func (e *UnknownError) Error() string { return e.Text }

// Detect returns the format of a document. Most are recognised by their beginning; otherwise the whole document is
// read, and compared with the formats that more returns, too. The error is an [*UnknownError], an error of the document
// as of package jsonstream, or an error of src.
func Detect(ctx context.Context, src io.ReadSeeker, limits jsonstream.Limits, more func() ([]Format, error)) (Format, error) {
	f, found, outline, err := recognise(ctx, src, limits, All)
	if err != nil || found {
		return f, err
	}
	mapped, err := more()
	if err != nil {
		return Format{}, err
	}
	if f, found = outline.of(mapped); found {
		return f, nil
	}
	return Format{}, &UnknownError{explain(outline)}
}

// recognise compares a document with formats: first its beginning, and then all of it. If it is of none of them, the
// outline has the whole document.
func recognise(ctx context.Context, src io.ReadSeeker, limits jsonstream.Limits, among []Format) (f Format, found bool, o *Outline, err error) {
	for _, most := range []int64{headSize, limits.MaxBytes} {
		var whole bool
		if o, whole, err = sketch(ctx, src, limits, most); err != nil {
			return Format{}, false, nil, err
		}
		if f, found = o.of(among); found || whole {
			break
		}
	}
	return f, found, o, nil
}

// of returns the first format that recognises the document.
func (o *Outline) of(formats []Format) (f Format, found bool) {
	for _, f := range formats {
		if f.Recognises(o) {
			return f, true
		}
	}
	return Format{}, false
}
