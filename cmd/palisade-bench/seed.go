package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// seedResults is the number of new findings per upload. A store of large uploads is made several times as fast as with
// fillResults.
const seedResults = 1000

func newSeedCommand() *cobra.Command {
	findings := 1_000_000
	command := &cobra.Command{
		Use:   "seed DIRECTORY",
		Short: "Fill a SQLite store for other measurements, and keep it",
		Long: `Starts a server on a new store in DIRECTORY, uploads findings as all measurements do, decorates a part of them with
verdicts, policies and tags, and stops the server. Half of the findings are on each of two refs. The deployment is
"` + deployment + `": serve the store with ` + "`palisade serve --deployment " + deployment + " --data DIRECTORY`" + `. A million findings take about 2 GB.`,
		Example: `  palisade-bench seed --findings 50000 /tmp/store`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return seed(cmd.Context(), args[0], findings, cmd.ErrOrStderr())
		},
	}
	command.Flags().IntVar(&findings, "findings", findings, fmt.Sprintf("findings in the store, rounded up to uploads of %d", seedResults))
	return command
}

// seed fills a store in a directory that is missing or empty.
func seed(ctx context.Context, dir string, findings int, stderr io.Writer) (err error) {
	if findings < 1 {
		return fmt.Errorf("--findings: got %d, want at least 1", findings)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: want an empty directory", dir)
	}
	b := &bench{stderr: stderr, began: time.Now(), token: "sgp_" + rand.Text() + rand.Text()}
	defer func() { err = errors.Join(err, b.stop(), b.closeDatabase()) }()
	if err := b.open(ctx, dir); err != nil {
		return err
	}
	uploads := (findings + seedResults - 1) / seedResults
	if err := makeUploads(ctx, 0, uploads, seedResults, func(ctx context.Context, u fillUpload) error {
		if b.stored%(50*seedResults) == 0 {
			b.progress("seed: %d of %d findings", b.stored, findings)
		}
		return b.create(ctx, u.project, u.ref, u.category, u.report, seedResults)
	}); err != nil {
		return err
	}
	return b.decorate(ctx)
}
