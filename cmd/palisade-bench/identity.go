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
		Short: "Prove by mutation that findings keep their identity",
		Long: `Takes real reports and the code under them, decides on a random half of their findings on a real server (SQLite, loopback),
edits the code in ways whose effect on every line is known, uploads what the scanner says then, and compares what the
server made of it with the truth:

  decisions kept  of those on problems that the edit touched: the same finding stands for the same problem, decision and all
  wrong merges    findings that stand for another problem than before
  wrong closes    problems that are in the code, while no open finding stands for them
  wrong reopens   findings that ask for attention again although nothing of their own came back
  shown as new    problems for which another finding stands now
  not closed      findings that are open without a problem

"scanned": the scanner ran over the edited code; "carried": its old report was carried along the lines. The exit status is
0, 1 when a bar was missed, or 2 when nothing can be said. Go modules and scanners come through the go command; what
scanners said is kept in the cache directory.`,
		Example: `  palisade-bench identity
  palisade-bench identity --edit 'file moved' --source gosec --seed 7 --faults`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runIdentity(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.Uint64Var(&o.seed, "seed", 1, "what random choices follow from")
	flags.StringVar(&o.reports, "reports", filepath.Join("services", "scans", "testdata"), "directory of the recorded reports")
	flags.StringVar(&o.cache, "cache", "", "directory for scanners and what they said; empty means palisade-bench in the user's cache directory")
	flags.StringVar(&o.edit, "edit", "", "only edits whose name holds this")
	flags.StringVar(&o.source, "source", "", "only sources whose name holds this")
	flags.BoolVar(&o.faults, "faults", false, "tell on stderr of each problem that went wrong")
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
		return errors.New("--edit and --source choose nothing")
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
			if !strings.Contains(edit.Name, o.edit) || !strings.Contains(source.Name, o.source) {
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
	return &identityServer{
		Server: identity.Server{Base: "http://" + process.ready.HTTP, Token: token, Deployment: deployment, HTTP: &http.Client{Transport: transport}},
		child:  process, transport: transport, dir: dir,
	}, nil
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
