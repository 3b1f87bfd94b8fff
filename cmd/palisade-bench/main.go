package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK    = 0
	exitMiss  = 1 // a ratio is worse than its bar
	exitError = 2 // nothing can be said about the ratios
)

// errMiss ends a run whose table has been printed.
var errMiss = errors.New("a bar was missed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	switch {
	case err == nil:
		os.Exit(exitOK)
	case errors.Is(err, errMiss):
		fmt.Fprintln(os.Stderr, "palisade-bench:", err)
		os.Exit(exitMiss)
	default:
		fmt.Fprintln(os.Stderr, "palisade-bench:", err)
		os.Exit(exitError)
	}
}

// minFindings fill a page after the filter, and a deep one.
const minFindings = 5000

// options are what a run is told.
type options struct {
	findings int
	results  int
	// reportFindings are in a store of their own.
	reportFindings int
	rounds         int
	cpu            time.Duration
	database       string
	profiles       string
}

func newCommand() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:   "palisade-bench",
		Short: "Measure the hot paths of Palisade against the least that they can cost",
		Long: `Starts a server on free loopback ports with an empty database in a temporary directory, uploads findings into it,
and measures, in turns with what each is compared to:

  findings page   100 findings, filtered by status and severity, with authentication and access rule: CPU of the server
                  per request, against a net/http handler that writes the same bytes from memory, and against a small
                  program that reads the same rows with database/sql
  report upload   new findings, and the same report again: rows a second, against a prepared multi-row INSERT of the
                  same rows into a copy of the database
  deep pages      page 500 at the end of a walk and by a jump, against page 0
  reports         over a million findings in a store of their own (SQLite): the first one, which reads them all, later ones,
                  and one after an upload; these bars are times, not ratios

The table on stdout gives the median of the rounds and the range, the ratio, and the bar where there is one. Progress is
on stderr. The exit status is 0, 1 when a bar was missed, or 2 when the measurement failed. Nothing is left behind.

Compare ratios of one run only: microseconds of different machines, or of different hours, say little.`,
		Example: `  go run ./cmd/palisade-bench                                   # everything, four minutes
  go run ./cmd/palisade-bench --findings 10000 --rounds 3       # a quick look
  go run ./cmd/palisade-bench --database postgres://me@127.0.0.1/postgres   # in a database of its own on that server`,
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := root.Flags()
	flags.IntVar(&o.findings, "findings", 100_000, "findings in the store before anything is measured")
	flags.IntVar(&o.results, "results", 10_000, "results in an uploaded report")
	flags.IntVar(&o.reportFindings, "report-findings", 1_000_000, "findings in the store for reports; 0 leaves them out")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of everything; the table gives their median")
	flags.DurationVar(&o.cpu, "cpu", time.Second, "CPU time that a server spends in one round")
	flags.StringVar(&o.database, "database", "", "postgres:// URL of a server on which a database may be made (and is dropped at the end); empty means SQLite")
	flags.StringVar(&o.profiles, "profiles", "", "directory for CPU profiles of page and upload, for go tool pprof")
	root.AddCommand(newIdentityCommand())
	root.AddCommand(newChildCommands()...)
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// check refuses what cannot be measured.
func (o options) check() error {
	switch {
	case o.findings < minFindings:
		return fmt.Errorf("--findings: got %d, want at least %d", o.findings, minFindings)
	case o.reportFindings < 0:
		return fmt.Errorf("--report-findings: got %d, want at least 0", o.reportFindings)
	case o.results < 1:
		return fmt.Errorf("--results: got %d, want at least 1", o.results)
	case o.rounds < 1:
		return fmt.Errorf("--rounds: got %d, want at least 1", o.rounds)
	case o.cpu <= 0:
		return fmt.Errorf("--cpu: got %s, want a positive duration", o.cpu)
	case o.database != "" && !strings.HasPrefix(o.database, "postgres://") && !strings.HasPrefix(o.database, "postgresql://"):
		return errors.New("--database: want a URL that begins with postgres://, or nothing for SQLite")
	}
	return nil
}
