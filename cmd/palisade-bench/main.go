package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Exit statuses.
const (
	exitOK    = 0
	exitMiss  = 1 // a ratio exceeds its limit
	exitError = 2 // the ratios could not be measured
)

// errMiss ends a run after its table was printed: a limit was exceeded.
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

// minFindings is enough for a full page after the filter, and a deep one.
const (
	minFindings = 5000
	minGrowth   = 2000
)

// options are the options of a run.
type options struct {
	only     []string
	findings int
	growth   []int
	results  int
	// largeBytes is the size of the largest imported report.
	largeBytes   int64
	dependencies int
	listRequests int
	// reportFindings is the size of the separate store for reports.
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
		Short: "Measure the hot paths of Palisade against minimal baselines",
		Long: `Starts a server on free loopback ports with an empty database in a temporary directory, uploads findings, and
measures the following parts in turns with their baselines:

  growth    while the store is filled: a page, a deep page, an upload and a triage decision at each size in --growth, and
            the exponent that fits them
  size      start to ready, memory of an idle server, bytes on disk
  pages     100 and 3,000 findings, filtered by status and severity, over HTTP and gRPC with authentication and access rule:
            CPU time of the server per request, against a net/http handler that writes the same bytes from memory, and
            against the plain reader, a small program that reads the encoded findings from the same database
  deep      page 5,000 at the end of a listing session against the first pages of the same session, jumps to deep pages
            against an OFFSET, a full listing during imports
  filters   the documented lists and filters, alone and in pairs: 95th percentile of each
  issues    lists of 50 issues with any two filters in every order, and numbers, filter values and groups with one filter:
            95th percentile of each
  skewed    random filters over a separate store of the same size (SQLite) with skewed values: 95th percentile of all
            requests
  dependencies   the lists of a million dependencies with their documented filters: 95th percentile of each
  uploads   new findings, and the same report again: rows per second, against a prepared multi-row INSERT of the same rows
  triage    single decisions by 1 and 16 clients, and 100,000 findings in bulk, against handwritten SQL
  feed      changes that are written in SQL, 1,000 a second, to 20 watchers: from the commit to the delivery, on one node
            and on PostgreSQL on three
  import    readers, and triage in another deployment, during an import of 100,000 findings; memory during the import of a
            report of 1 GiB, and readers of another deployment; each against an idle server
  neighbours   one deployment at full load in each queue: list, triage, upload, notification and workflow of another one,
            against an idle server (a separate small store)
  reports   over a million findings in a separate store (SQLite): the first report, which reads all findings, later ones,
            and one after an upload; the bars are times, not ratios

Each table on stdout has the median and the range of the rounds, the ratio, and the bar (the limit of the ratio or value), if any. Progress is
printed to stderr. Exit status: 0 success, 1 a bar was missed, 2 the measurement failed. Temporary files are removed.

Compare only ratios within one run: absolute times depend on the machine and its load. A full run needs about 8 GB in the
temporary directory (TMPDIR).`,
		Example: `  palisade-bench                                   # everything over a million findings, 15 to 35 minutes
  palisade-bench --findings 50000 --rounds 3 --large-bytes 50000000 --dependencies 50000 --report-findings 50000   # a quick run
  palisade-bench --only pages,deep                 # some parts
  palisade-bench --findings 5000000 --growth 10000,100000,1000000 --only growth   # five million
  palisade-bench --database postgres://me@127.0.0.1/postgres   # in a new database on that server
  palisade-bench peers
  palisade-bench seed /tmp/store                   # only fill a store, and keep it`,
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
	flags.StringSliceVar(&o.only, "only", nil, "parts to run: "+strings.Join(partNames(), ",")+" (default all)")
	flags.IntVar(&o.findings, "findings", 1_000_000, "findings in the store before anything is measured")
	flags.IntSliceVar(&o.growth, "growth", []int{10_000, 100_000}, "sizes of the store to measure growth at, in addition to --findings")
	flags.IntVar(&o.results, "results", 10_000, "results in an uploaded report")
	flags.Int64Var(&o.largeBytes, "large-bytes", 1<<30, "size of the largest imported report, in bytes; 0 skips it")
	flags.IntVar(&o.dependencies, "dependencies", 1_000_000, "dependencies in the store; 0 skips their lists")
	flags.IntVar(&o.listRequests, "list-requests", 20, "requests per list")
	flags.IntVar(&o.reportFindings, "report-findings", 1_000_000, "findings in the store for reports; 0 skips reports")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each measurement; the table has their median")
	flags.DurationVar(&o.cpu, "cpu", time.Second, "CPU time of a server per round")
	flags.StringVar(&o.database, "database", "", "postgres:// URL of a server where a database may be created (it is dropped at the end); default: SQLite")
	flags.StringVar(&o.profiles, "profiles", "", "directory for profiles of pages and uploads, for go tool pprof")
	root.AddCommand(newIdentityCommand(), newPeersCommand(), newSeedCommand())
	root.AddCommand(newChildCommands()...)
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// check rejects options that cannot be measured.
func (o options) check() error {
	switch {
	case o.findings < minFindings:
		return fmt.Errorf("--findings: got %d, want at least %d", o.findings, minFindings)
	case slices.ContainsFunc(o.growth, func(size int) bool { return size < minGrowth }):
		return fmt.Errorf("--growth: got %v, want sizes of at least %d", o.growth, minGrowth)
	case o.largeBytes < 0 || o.largeBytes > 1<<30:
		return fmt.Errorf("--large-bytes: got %d, want 0 to %d (the server's limit)", o.largeBytes, 1<<30)
	case o.dependencies < 0:
		return fmt.Errorf("--dependencies: got %d, want at least 0", o.dependencies)
	case o.listRequests < 1:
		return fmt.Errorf("--list-requests: got %d, want at least 1", o.listRequests)
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
	return o.checkOnly()
}
