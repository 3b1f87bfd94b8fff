package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses. A pipeline must distinguish a negative result (1: the audit trail is broken) from a failed check (2).
const (
	exitOK    = 0
	exitNo    = 1
	exitError = 2
	// exitChanges means that a file differs from the server.
	exitChanges = 3
	// exitMore means that a list has more entries than --limit let it print.
	exitMore = 4
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], osStreams()))
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, std streams) int {
	root := newRoot(std)
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errNo) {
		return exitNo
	}
	if errors.Is(err, errChanges) {
		return exitChanges
	}
	if errors.Is(err, errMore) {
		return exitMore
	}
	if text := err.Error(); text != "" { // a command that has printed its error returns errReported
		_, _ = fmt.Fprintln(std.err, "palisade: "+strings.TrimSuffix(text, "\n"))
	}
	if isUsageError(err) {
		_, _ = fmt.Fprintf(std.err, "Try: %s --help\n", command.CommandPath())
	}
	return exitError
}

func newRoot(std streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "palisade",
		Short: "Self-hosted application-security platform",
		Long: `Palisade stores the findings of security scanners, tracks their history and triage across
scans, and serves them over HTTP/JSON and gRPC.`,
		Example: `  palisade serve                                               # SQLite in ./data, prints a token on first start
  export PALISADE_TOKEN=sgp_…                                  # that token
  palisade upload gosec.sarif --project acme/web --ref main    # send a report
  palisade findings --severities high,critical --status open   # list its findings`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(&cobra.Group{ID: "server", Title: "On the server:"}, &cobra.Group{ID: "client", Title: "Through the API:"})
	for _, c := range []*cobra.Command{newServe(std), newMigrate(std), newBackup(std), newRestore(std), newToken(std), newJWT(std), newConsoleLink(std), newUser(std), newAudit(std), newDoctor(std), newHealthcheck(std)} {
		c.GroupID = "server"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{
		newUpload(std), newScan(std), newFindings(std), newProjects(std), newCloses(std), newPullRequests(std), newTickets(std), newSupport(std), newFreshness(std), newReport(std), newWorkflow(std), newRules(std), newPolicy(std), newAI(std), newFormats(std), newAdvisories(std),
	} {
		c.GroupID = "client"
		root.AddCommand(c)
	}
	root.AddCommand(newListen(std), newVersion(std), newConfigTable(std))
	return root
}
