package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// allPageSize is the page size of --all: the largest that the contract allows (specification, operation 11).
const allPageSize = 3000

type findingsOptions struct {
	client clientFlags
	output string
	all    bool
	limit  int
	// removed lists removed findings instead.
	removed bool
}

func newFindings(std streams) *cobra.Command {
	var o findingsOptions
	cmd := &cobra.Command{
		Use:   "findings",
		Short: "List findings with all filters of the API, show and triage them, and explain or correct their identity",
		Long: `List findings, newest first, as a table, as JSON (exactly as the API returns them) or as CSV. The filters
have the names and values of the API's query parameters; separate list values with commas or repeat the
flag. JSON and CSV have all findings, a table has one page unless you give --all. Findings that were removed are
listed with --removed only.

Exit status: 0 done; 4 --limit left findings out; 2 an error.

"show" prints one finding, "triage" and "exceptions" decide about findings, "watch", "export" and "import" move them.
The other subcommands concern the identity of findings: how findings are matched from scan to scan, and how to correct a wrong match.`,
		Example: `  palisade findings --status open --severities high,critical
  palisade findings --repos acme/web --ref main --since 7d
  palisade findings --issue-type sca --exposures reachable,always_reachable
  palisade findings --dedup -o csv > findings.csv
  palisade findings --removed --repos acme/web --ref refs/pull/7/merge
  palisade findings --limit 20 -o json | jq '.findings[].rule_name'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, std) },
	}
	o.client.add(cmd)
	addFilterFlags(cmd.Flags())
	cmd.Flags().BoolVar(&o.all, "all", false, "print all pages as a table, too")
	cmd.Flags().IntVar(&o.limit, "limit", 0, "maximum number of findings; exit status 4 if there are more")
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table, json or csv")
	cmd.Flags().BoolVar(&o.removed, "removed", false, "list the findings that were removed, which no other list shows, with the reason")
	cmd.MarkFlagsMutuallyExclusive("all", "page", "limit")
	cmd.AddCommand(newFindingsShow(std), newFindingsExplain(std), newFindingsSplit(std), newFindingsMerge(std), newFindingsMoveCategory(std), newFindingsMoveProduct(std),
		newFindingsUndo(std), newIdentityChanges(std),
		newFindingsTriage(std), newFindingsExceptions(std), newFindingsWatch(std), newFindingsExport(std), newFindingsImport(std))
	return cmd
}

func (o *findingsOptions) run(cmd *cobra.Command, std streams) error {
	if err := checkLimit(cmd, o.limit); err != nil {
		return err
	}
	if o.removed {
		return o.runRemoved(cmd, std)
	}
	if err := oneOf("output", o.output, "table", "json", "csv"); err != nil {
		return err
	}
	query, err := filterQuery(cmd.Flags(), std.now())
	if err != nil {
		return err
	}
	c, err := o.client.newClient(std)
	if err != nil {
		return err
	}
	deployment, err := c.resolveDeployment(cmd.Context(), o.client.deployment)
	if err != nil {
		return err
	}
	var printer findingsPrinter
	switch o.output {
	case "json":
		printer = &jsonPrinter{w: std.out}
	case "csv":
		printer = newCSVPrinter(std.out)
	default:
		printer = newTablePrinter(std.out, std.colour(std.out))
	}
	list := findingsList{client: c, deployment: deployment, query: query}
	paged := cmd.Flags().Changed("page") || o.output == "table" && !o.all && o.limit == 0
	var count int
	var more bool
	if paged {
		count, err = list.printPage(cmd.Context(), printer)
	} else {
		count, more, err = list.printAll(cmd.Context(), printer, o.limit)
	}
	if err != nil {
		return err
	}
	if err := printer.end(); err != nil {
		return err
	}
	switch {
	case more:
		_, _ = fmt.Fprintf(std.err, "There are more than %d findings.\n", count)
		return errMore
	case o.output == "table" || paged:
		_, _ = fmt.Fprintln(std.err, o.footer(cmd.Flags(), query, count, paged))
	}
	return nil
}

// footer prints how much was shown and how to see more. The API gives no total; a full page means that there may be
// more.
func (o *findingsOptions) footer(flags *pflag.FlagSet, query url.Values, count int, paged bool) string {
	if count == 0 {
		return "No findings match."
	}
	noun := "findings"
	if count == 1 {
		noun = "finding"
	}
	if !paged {
		return fmt.Sprintf("%d %s.", count, noun)
	}
	page, _ := flags.GetInt("page")
	size := 100
	if text := query.Get("page_size"); text != "" {
		size, _ = strconv.Atoi(text)
	}
	if count < size {
		return fmt.Sprintf("%d %s on page %d, the last one.", count, noun, page)
	}
	return fmt.Sprintf("%d %s on page %d; there may be more: --page %d, or --all.", count, noun, page, page+1)
}

// findingsList reads the pages of one query.
type findingsList struct {
	client     *client
	deployment string
	query      url.Values
}

func (l *findingsList) page(ctx context.Context) ([]json.RawMessage, error) {
	req, err := l.client.request(ctx, http.MethodGet, l.query, nil, "api", "v1", "deployments", url.PathEscape(l.deployment), "findings")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Findings []json.RawMessage `json:"findings"`
	}
	err = l.client.do(req, &answer)
	return answer.Findings, err
}

func (l *findingsList) printPage(ctx context.Context, printer findingsPrinter) (int, error) {
	items, err := l.page(ctx)
	if err != nil {
		return 0, err
	}
	_, err = printItems(printer, items, map[int64]bool{}, 0)
	return len(items), err
}

// printAll reads pages until one is not full. A finding that is added between two pages shifts the others by one, so
// the next page begins with the last finding of the previous one. Each id is printed once. A limit other than 0 ends
// the list, and more says that it left findings out.
func (l *findingsList) printAll(ctx context.Context, printer findingsPrinter, limit int) (count int, more bool, err error) {
	size := allPageSize
	if text := l.query.Get("page_size"); text != "" {
		size, _ = strconv.Atoi(text)
	}
	l.query.Set("page_size", strconv.Itoa(size))
	seen := map[int64]bool{}
	for page := 0; ; page++ {
		l.query.Set("page", strconv.Itoa(page))
		items, err := l.page(ctx)
		if err == nil {
			more, err = printItems(printer, items, seen, limit)
		}
		if err != nil {
			return 0, false, err
		}
		if more || len(items) < size || len(items) == 0 {
			return len(seen), more, nil
		}
	}
}

func printItems(printer findingsPrinter, items []json.RawMessage, seen map[int64]bool, limit int) (more bool, err error) {
	for _, raw := range items {
		var f finding
		if err := json.Unmarshal(raw, &f); err != nil {
			return false, fmt.Errorf("unexpected finding in the response: %w", err)
		}
		if seen[f.ID] {
			continue
		}
		if limit > 0 && len(seen) == limit {
			return true, nil
		}
		seen[f.ID] = true
		if err := printer.add(raw, f); err != nil {
			return false, err
		}
	}
	return false, nil
}
