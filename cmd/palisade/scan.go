package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newScan(std streams) *cobra.Command {
	var flags clientFlags
	var ref string
	var wait bool
	cmd := &cobra.Command{
		Use:   "scan PROJECT…",
		Short: "Let Palisade scan projects itself, and see how such scans go",
		Long: `Let Palisade scan projects itself, now. A node with the role scanner fetches the code from the connected source-code
host and searches it for secrets and vulnerable dependencies. Each project has to be bound to a repository there.
docs/managed-scans.md has more.

With --wait, the command prints what the scans do and waits until all have ended. It exits with status 1 if one of them
did not succeed, or if a project cannot be scanned.`,
		Example: `  palisade scan acme/web                    # the primary branch
  palisade scan acme/web --ref release --wait
  palisade scan show 4711                   # its log
  palisade scan retry 4711`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			raw, err := d.send(cmd.Context(), http.MethodPost, "api/agent", nil, map[string]any{"projects": args, "ref": ref}, "scans", "run")
			if err != nil {
				return err
			}
			out := &scansv1.RunManagedScansResponse{}
			if err := decode(raw, out); err != nil {
				return err
			}
			var ids []string
			for _, task := range out.GetTasks() {
				ids = append(ids, task.GetScanId())
			}
			for _, one := range out.GetErrors() {
				_, _ = fmt.Fprintf(std.err, "%s: %s\n", printable(one.GetProject()), printable(one.GetMessage()))
			}
			return d.started(cmd.Context(), std, ids, wait, len(out.GetErrors()) > 0)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&ref, "ref", "", "branch to scan; the primary branch of each project if it is empty")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end of the scans")
	cmd.AddCommand(newScanShow(std), newScanCancel(std), newScanRetry(std))
	return cmd
}

// started prints the scans that were started, and waits for them. refused says that others were not.
func (d *deploymentClient) started(ctx context.Context, std streams, ids []string, wait, refused bool) error {
	for _, id := range ids {
		if _, err := fmt.Fprintf(std.out, "scan %s waits for a node; see: palisade scan show %s\n", printable(id), printable(id)); err != nil {
			return err
		}
	}
	if wait {
		for _, id := range ids {
			scan, err := d.follow(ctx, std, id)
			if err != nil {
				return err
			}
			refused = refused || scan.GetStatus() != scansv1.ScanStatus_SCAN_STATUS_COMPLETED
		}
	}
	if refused {
		return errNo
	}
	return nil
}

// follow prints the new lines of a scan's log until the scan ends.
func (d *deploymentClient) follow(ctx context.Context, std streams, id string) (*scansv1.ManagedScan, error) {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	for shown := 0; ; {
		scan, err := d.managedScan(ctx, http.MethodGet, id)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(scan.GetLog()[min(shown, len(scan.GetLog())):]) {
			_, _ = fmt.Fprintf(std.err, "  scan %s %s\n", printable(id), printable(strings.TrimSpace(line)))
		}
		shown = len(scan.GetLog())
		if s := scan.GetStatus(); s != scansv1.ScanStatus_SCAN_STATUS_PENDING && s != scansv1.ScanStatus_SCAN_STATUS_RUNNING {
			return scan, printScans(std, scan)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("no longer waiting: scan %s continues; see: palisade scan show %s", printable(id), printable(id))
		case <-tick.C:
		}
	}
}

// managedScan reads a scan, or changes it with a verb.
func (d *deploymentClient) managedScan(ctx context.Context, method, id string, verb ...string) (*scansv1.ManagedScan, error) {
	if _, err := strconv.ParseUint(id, 10, 63); err != nil {
		return nil, usagef("got %q, want the id of a scan", id)
	}
	var body any
	if method == http.MethodPost {
		body = map[string]any{}
	}
	raw, err := d.send(ctx, method, "api/agent", nil, body, append([]string{"managed-scans", id}, verb...)...)
	if err != nil {
		return nil, err
	}
	out := &scansv1.GetManagedScanResponse{} // CancelManagedScan answers in the same form
	err = decode(raw, out)
	return out.GetManagedScan(), err
}

func newScanShow(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "show SCAN",
		Short: "Show how a managed scan went, with its log",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			scan, err := d.managedScan(cmd.Context(), http.MethodGet, args[0])
			if err != nil {
				return err
			}
			if err := printScans(std, scan); err != nil {
				return err
			}
			for line := range strings.Lines(scan.GetLog()) {
				if _, err := fmt.Fprintln(std.out, "  "+printable(strings.TrimSpace(line))); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}

func newScanCancel(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "cancel SCAN",
		Short: "Cancel a managed scan that has not ended",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			scan, err := d.managedScan(cmd.Context(), http.MethodPost, args[0], "cancel")
			if err != nil {
				return err
			}
			return printScans(std, scan)
		},
	}
	flags.add(cmd)
	return cmd
}

func newScanRetry(std streams) *cobra.Command {
	var flags clientFlags
	var wait bool
	cmd := &cobra.Command{
		Use:   "retry SCAN…",
		Short: "Run managed scans again that failed or never finished, at most 10",
		Args:  cobra.RangeArgs(1, 10),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			raw, err := d.send(cmd.Context(), http.MethodPost, "api/v2", nil, map[string]any{"scanIds": args}, "scans", "retry")
			if err != nil {
				return err
			}
			out := &scansv1.RetryScansResponse{}
			if err := decode(raw, out); err != nil {
				return err
			}
			var ids []string
			for _, task := range out.GetTasks() {
				ids = append(ids, task.GetScanId())
			}
			for _, one := range out.GetErrors() {
				_, _ = fmt.Fprintf(std.err, "scan %s: %s\n", printable(one.GetScanId()), printable(one.GetMessage()))
			}
			return d.started(cmd.Context(), std, ids, wait, len(out.GetErrors()) > 0)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end of the scans")
	return cmd
}

func printScans(std streams, list ...*scansv1.ManagedScan) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "SCAN\tSTATUS\tREF\tCOMMIT\tCAUSE\tREQUESTED\tPROBLEM")
	for _, s := range list {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", s.GetScanId(), strings.ToLower(strings.TrimPrefix(s.GetStatus().String(), "SCAN_STATUS_")),
			printable(s.GetRef()), orDash(s.GetCommit()[:min(len(s.GetCommit()), 12)]), strings.ToLower(strings.TrimPrefix(s.GetCause().String(), "MANAGED_SCAN_CAUSE_")),
			instant(s.GetCreatedAt().AsTime()), orDash(s.GetProblem()))
	}
	return table.Flush()
}
