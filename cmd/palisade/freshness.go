package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

// fresh is the state of an analysis that needs no attention.
const fresh = "ok"

type freshnessOptions struct {
	client  clientFlags
	listing listing
	project string
	states  []string
	check   bool
}

func newFreshness(std streams) *cobra.Command {
	o := &freshnessOptions{}
	cmd := &cobra.Command{
		Use:   "freshness",
		Short: "Show which tools scan no more, fail, or find much less than before",
		Long: `Nothing fails when scanning stops. This command shows, for each tool on each branch that counts, whether it
still scans as often as it used to, and with as many results, files and rules. The worst state comes first:

  silent   no successful scan for so long that scanning is off
  failing  the last two scans or more failed
  late     no successful scan for longer than usual
  shrunk   results, files or rules dropped sharply
  ok       everything else

Full scans of the primary branch count, and of branches whose scans span 30 days or more.`,
		Example: `  palisade freshness
  palisade freshness --state silent,failing
  palisade freshness --project acme/web --check    # in CI: exit status 1 unless all are ok`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, std) },
	}
	o.client.add(cmd)
	cmd.Flags().StringVar(&o.project, "project", "", "only the project of this `name`")
	cmd.Flags().StringSliceVar(&o.states, "state", nil, "only these states: silent, failing, late, shrunk, ok")
	cmd.Flags().BoolVar(&o.check, "check", false, "exit with status 1 if a listed state is not ok")
	cmd.Flags().StringVarP(&o.listing.output, "output", "o", "table", "table or json")
	o.listing.addLimit(cmd, "entries")
	cmd.MarkFlagsMutuallyExclusive("check", "limit")
	return cmd
}

func (o *freshnessOptions) run(cmd *cobra.Command, std streams) error {
	ctx := cmd.Context()
	if err := o.listing.check(cmd); err != nil {
		return err
	}
	for _, state := range o.states {
		if err := oneOf("state", state, "silent", "failing", "late", "shrunk", fresh); err != nil {
			return err
		}
	}
	d, err := openDeployment(ctx, o.client, std)
	if err != nil {
		return err
	}
	query := url.Values{}
	if o.project != "" {
		query.Set("project", o.project)
	}
	if len(o.states) > 0 {
		query["state"] = o.states
	}
	stale, rows, table := 0, 0, printout.NewTable(std.out)
	if o.listing.output == "table" {
		_, _ = fmt.Fprintln(table, "STATE\tSINCE\tPROJECT\tREF\tTOOL\tCATEGORY\tLAST SCAN\tDAYS BETWEEN\tRESULTS\tFILES\tREASON")
	}
	for more := true; more; {
		query.Set("limit", strconv.Itoa(o.listing.next(rows, 1000)))
		raw, err := d.send(ctx, http.MethodGet, "api/v1", query, nil, "freshness")
		if err != nil {
			return err
		}
		var page scansv1.ListFreshnessResponse
		if err := decode(raw, &page); err != nil {
			return err
		}
		for _, f := range page.GetFreshness() {
			if f.GetState() != fresh {
				stale++
			}
			if o.listing.output == "table" {
				printFreshness(table, f)
			}
		}
		if o.listing.output == "json" {
			_, _ = fmt.Fprintf(std.out, "%s\n", raw)
		}
		rows += len(page.GetFreshness())
		query.Set("cursor", page.GetCursor())
		more = page.GetCursor() != "" && o.listing.next(rows, 1) > 0
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if query.Get("cursor") != "" {
		return o.listing.more(std, true)
	}
	if o.check && stale > 0 {
		_, _ = fmt.Fprintf(std.err, "palisade: %d not ok\n", stale)
		return errNo
	}
	return nil
}

func printFreshness(table *printout.Table, f *scansv1.AnalysisFreshness) {
	between := "-"
	if n := f.GetUsualIntervalDays(); n > 0 {
		between = fmt.Sprint(n)
	}
	_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(f.GetState()), day(f.GetSince().AsTime()), orDash(f.GetProject()),
		orDash(f.GetRef()), orDash(f.GetTool()), orDash(f.GetCategory()), day(f.GetLastScan().GetAt().AsTime()), between,
		fromUsual(f.GetResults()), fromUsual(f.GetFiles()), orDash(f.GetReason()))
}

// fromUsual writes a number, and the usual one if it differs: "3 (was 120)".
func fromUsual(c *scansv1.FreshnessCount) string {
	switch {
	case c == nil || c.Now == nil:
		return "-"
	case c.Before == nil || c.GetBefore() == c.GetNow():
		return fmt.Sprint(c.GetNow())
	}
	return fmt.Sprintf("%d (was %d)", c.GetNow(), c.GetBefore())
}
