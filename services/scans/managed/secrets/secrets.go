// Package secrets searches code for secrets with the rules of gitleaks.
package secrets

import (
	"bytes"
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"
	"github.com/zricethezav/gitleaks/v8/report"

	"github.com/palisade/palisade/services/scans/formats"
	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scm/clone"
)

const (
	// MaxFile is the size of the largest file that is searched, in bytes. Findings in larger ones stay as they are.
	MaxFile = 5 << 20
	// binaryHead is how many bytes at the start of a file decide whether it is text, as in Git.
	binaryHead = 8000
	module     = "github.com/zricethezav/gitleaks/v8"
)

// detector is shared, because it compiles hundreds of expressions. It has no state that a search changes.
var detector = sync.OnceValues(func() (*detect.Detector, error) {
	logging.Logger = zerolog.Nop() // it would write to the standard error
	return detect.NewDetectorDefaultConfig()
})

// Counts says what a search saw.
type Counts struct {
	Files, Binary, Large, Secrets int
	Bytes                         int64
}

// Search writes a run with the secrets in the files of a checkout.
func Search(ctx context.Context, c *clone.Checkout, w *formats.Writer) (n Counts, err error) {
	d, err := detector()
	if err != nil {
		return n, fmt.Errorf("read the rules of gitleaks: %w", err)
	}
	w.Run(formats.Tool{Name: "gitleaks", Version: version(), Product: formats.ProductSecrets})
	err = c.Files(ctx, func(f clone.File) error { return n.search(ctx, d, f, w) })
	return n, err
}

func (n *Counts) search(ctx context.Context, d *detect.Detector, f clone.File, w *formats.Writer) error {
	if f.Size < 0 || f.Size > MaxFile {
		n.Large++
		w.Failed(f.Path, fmt.Sprintf("it is larger than %d MiB", MaxFile>>20))
		return nil
	}
	content, err := f.Content(ctx)
	if err != nil {
		return err
	}
	if bytes.IndexByte(content[:min(len(content), binaryHead)], 0) >= 0 {
		n.Binary++
		return nil
	}
	n.Files, n.Bytes = n.Files+1, n.Bytes+f.Size
	//lint:ignore SA1019 version 8 has no other way to name the file
	for _, leak := range d.DetectContext(ctx, detect.Fragment{Raw: string(content), FilePath: f.Path, StartLine: 1}) {
		n.Secrets++
		if err := w.Result(result(&leak)); err != nil {
			return err
		}
	}
	return ctx.Err() // a search that was cut off found less
}

// result is what the tool itself reports, with its places: so findings of its reports and these are recognised as one.
func result(leak *report.Finding) *formats.Result {
	l := formats.GitleaksLeak{
		RuleID: leak.RuleID, Description: leak.Description, Match: leak.Match, Secret: leak.Secret, File: leak.File, Commit: leak.Commit, Tags: leak.Tags,
		StartLine: jsonstream.Integer(leak.StartLine), EndLine: jsonstream.Integer(leak.EndLine),
		StartColumn: jsonstream.Integer(leak.StartColumn), EndColumn: jsonstream.Integer(leak.EndColumn),
	}
	return l.Result()
}

// version of the module in this program.
var version = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return ""
})
