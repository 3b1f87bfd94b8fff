package main

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/cmd/palisade-bench/identity"
)

// identityOptions are the options of the mutation test.
type identityOptions struct {
	seed    uint64
	reports string
	cache   string
	edit    string
	source  string
	faults  bool
}

func newIdentityCommand() *cobra.Command {
	var o identityOptions
	command := &cobra.Command{
		Use:   "identity",
		Short: "Test by mutation that findings keep their identity",
		Long: `Uploads real reports to a real server (SQLite, loopback) and triages a random half of the findings. Then edits the
scanned code with known effects on every line, uploads the scanner's new report, and compares the findings of the server
with the truth:

  decisions kept  share of touched and triaged problems that still have the same finding with its decision
  wrong merges    findings that are matched to a different problem
  wrong closes    problems in the code without an open finding
  wrong reopens   findings that were reopened although their own problem did not come back
  shown as new    problems that have a different finding now
  not closed      open findings without a problem

"scanned": the scanner ran on the edited code; "carried": its old report was carried along the lines. Exit status: 0
success, 1 a bar was missed, 2 the measurement failed. The go command fetches Go modules and scanners; reports of
scanners are kept in the cache directory.`,
		Example: `  palisade-bench identity
  palisade-bench identity --edit 'file moved' --source gosec --seed 7 --faults`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runIdentity(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the random choices")
	flags.StringVar(&o.reports, "reports", filepath.Join("services", "scans", "testdata"), "directory of the recorded reports")
	flags.StringVar(&o.cache, "cache", "", "cache directory for scanners and their reports; default: palisade-bench in the user's cache directory")
	flags.StringVar(&o.edit, "edit", "", "only edits with this text in their name")
	flags.StringVar(&o.source, "source", "", "only sources with this text in their name")
	flags.BoolVar(&o.faults, "faults", false, "print each faulty problem to stderr")
	return command
}

// runIdentity prints the table. It returns errMiss if a limit is exceeded.
func runIdentity(ctx context.Context, o identityOptions, stdout, stderr io.Writer) (err error) {
	if o.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		o.cache = filepath.Join(dir, "palisade-bench")
	}
	began := time.Now()
	scanners, err := identity.NewScanners(o.cache)
	if err != nil {
		return err
	}
	progress := func(format string, args ...any) {
		_, _ = fmt.Fprintf(stderr, "%7s  %s\n", elapsed(began), fmt.Sprintf(format, args...))
	}
	progress("code, scanners and reports")
	sources, err := identity.Sources(ctx, scanners, o.reports)
	if err != nil {
		return err
	}
	outcomes, err := o.measure(ctx, sources, stderr, progress)
	if err != nil {
		return err
	}
	if len(outcomes) == 0 {
		return errors.New("--edit and --source match nothing")
	}
	_, _ = fmt.Fprintf(stdout, "seed %d; %s; scanners ran %d times; %s\n\n", o.seed, machine(), scanners.Runs(), elapsed(began))
	ok, err := identity.WriteTable(stdout, outcomes)
	if err == nil && !ok {
		err = errMiss
	}
	return err
}

// measure runs every selected edit of every selected source, each in its own project.
func (o identityOptions) measure(
	ctx context.Context, sources []*identity.Source, stderr io.Writer, progress func(string, ...any),
) (outcomes []identity.Outcome, err error) {
	shared, err := startIdentityServer(ctx, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, shared.stop()) }()
	for _, edit := range identity.Edits() {
		for _, source := range sources {
			if !edit.Fits(source) || !strings.Contains(edit.Name, o.edit) || !strings.Contains(source.Name, o.source) {
				continue
			}
			progress("%s: %s", edit.Name, source.Name)
			outcome, err := o.one(ctx, edit, source, shared, stderr)
			if err != nil {
				return nil, err
			}
			outcomes = append(outcomes, outcome)
			if o.faults {
				for _, fault := range outcome.Faults {
					_, _ = fmt.Fprintln(stderr, "        ", fault)
				}
			}
		}
	}
	return outcomes, nil
}

// one runs one edit of one source.
func (o identityOptions) one(
	ctx context.Context, edit identity.Edit, source *identity.Source, server *identityServer, stderr io.Writer,
) (outcome identity.Outcome, err error) {
	if edit.Alone {
		if server, err = startIdentityServer(ctx, stderr); err != nil {
			return outcome, err
		}
		defer func() { err = errors.Join(err, server.stop()) }()
	}
	random := rand.New(rand.NewPCG(o.seed, seedOf(edit.Name+"/"+source.Name)))
	plan, err := identity.NewPlan(ctx, source, edit, random)
	if err != nil {
		return outcome, err
	}
	return plan.Run(ctx, &server.Server, random)
}

// identityServer is a server process with an empty store.
type identityServer struct {
	identity.Server
	child     *child
	transport *http.Transport
	dir       string
}

func startIdentityServer(ctx context.Context, stderr io.Writer) (*identityServer, error) {
	dir, err := os.MkdirTemp("", "palisade-bench-")
	if err != nil {
		return nil, err
	}
	token := "sgp_" + crand.Text() + crand.Text()
	process, err := start(ctx, rolePalisade, childSettings{Data: dir, Token: token}, stderr)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	transport := &http.Transport{}
	server := &identityServer{
		Server: identity.Server{Base: "http://" + process.ready.HTTP, Token: token, Deployment: deployment, HTTP: &http.Client{Transport: transport}},
		child:  process, transport: transport, dir: dir,
	}
	if err := server.HoldNothing(ctx); err != nil {
		return nil, errors.Join(err, server.stop())
	}
	return server, nil
}

func (s *identityServer) stop() error {
	s.transport.CloseIdleConnections()
	return errors.Join(s.child.stop(), os.RemoveAll(s.dir))
}

// seedOf makes the random choices of one edit and source independent of the selection of others.
func seedOf(name string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // a hash never fails
	return hash.Sum64()
}
