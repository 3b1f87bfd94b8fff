package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newProjects(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "projects",
		Short: "List projects with their latest scan, open findings and freshness",
		Long: `Lists the projects that you can see. Findings are the open ones on the primary branch. Freshness says whether
scans still run as they used to: ok, shrunk, late, failing or silent.`,
		Example: `  palisade projects list
  palisade projects list --search web --had-problems
  palisade projects list --not-set-up -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newProjectsList(std))
	return cmd
}

// projectsPage is the number of projects in one request.
const projectsPage = 500

func newProjectsList(std streams) *cobra.Command {
	var flags clientFlags
	var l listing
	var search string
	var hadProblems, notSetUp, archived, leftHost bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all projects",
		Example: `  palisade projects list
  palisade projects list --search web --had-problems`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			filters := map[string]any{"search": search, "archived": archived}
			if hadProblems {
				filters["latestScanStatus"] = projectsv1.LatestScanStatusBucket_LATEST_SCAN_STATUS_BUCKET_HAD_PROBLEMS.String()
			}
			if notSetUp {
				filters["setup"] = false
			}
			if leftHost {
				filters["leftHost"] = true
			}
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			return listProjects(cmd.Context(), std, d, filters, &l)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&search, "search", "", "only projects with this part of the `name`")
	cmd.Flags().BoolVar(&hadProblems, "had-problems", false, "only projects whose latest scan failed")
	cmd.Flags().BoolVar(&notSetUp, "not-set-up", false, "only projects that were never scanned")
	cmd.Flags().BoolVar(&archived, "archived", false, "archived projects instead of the others")
	cmd.Flags().BoolVar(&leftHost, "left-host", false, "only projects whose repository the source-code host lists no more")
	cmd.Flags().StringVarP(&l.output, "output", "o", "table", "table, or json with one page of the API in each line")
	l.addLimit(cmd, "projects")
	return cmd
}

// listProjects prints the pages of projects.
func listProjects(ctx context.Context, std streams, d *deploymentClient, filters map[string]any, l *listing) error {
	table := printout.NewTable(std.out)
	if l.output == "table" {
		_, _ = fmt.Fprintln(table, "ID\tPROJECT\tLATEST SCAN\tSTATUS\tCRITICAL\tHIGH\tMEDIUM\tLOW\tFRESHNESS\tTAGS")
	}
	rows := 0
	for cursor := ""; ; {
		body := map[string]any{"pageSize": l.next(rows, projectsPage), "cursor": cursor, "includeSummary": true, "filters": filters}
		raw, err := d.send(ctx, http.MethodPost, "api/agent", nil, body, "repos", "search")
		if err != nil {
			return err
		}
		var page projectsv1.SearchReposResponse
		if err := decode(raw, &page); err != nil {
			return err
		}
		rows += len(page.GetRepos())
		if l.output == "json" {
			if _, err := fmt.Fprintf(std.out, "%s\n", raw); err != nil {
				return err
			}
		} else {
			printProjects(table, page.GetRepos())
		}
		if cursor = page.GetCursor(); cursor == "" || l.next(rows, 1) <= 0 {
			if err := table.Flush(); err != nil {
				return err
			}
			return l.more(std, cursor != "")
		}
	}
}

func printProjects(table *printout.Table, repos []*projectsv1.Repository) {
	for _, repo := range repos {
		scanned, status := "-", "-"
		if scan := repo.GetLatestScan(); scan != nil {
			scanned = day(scan.GetStartedAt().AsTime())
			status = strings.ToLower(strings.TrimPrefix(scan.GetStatus().String(), "SCAN_STATUS_"))
		}
		found := repo.GetFindings()
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", repo.GetId(), printable(repo.GetName()), scanned, status,
			found.GetCritical(), found.GetHigh(), found.GetMedium(), found.GetLow(), orDash(repo.GetFreshness()), orDash(strings.Join(repo.GetTags(), ", ")))
	}
}
