package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

// maxRemoved is the largest page of removed findings.
const maxRemoved = 1000

// removedQuery translates the flags that the list of removed findings has, and refuses the others.
func removedQuery(cmd *cobra.Command) (url.Values, error) {
	query, parameters := url.Values{}, map[string]string{"issue_type": "issue_type", "repos": "project", "ref": "ref", "page_size": "limit"}
	for _, f := range filters {
		flag := cmd.Flags().Lookup(f.flag())
		if !flag.Changed {
			continue
		}
		name, known := parameters[f.name]
		if !known {
			return nil, usagef("--removed: only --issue-type, --repos (one project), --ref and --page-size go with it, not --%s", f.flag())
		}
		value := flag.Value.String()
		if f.kind == list || f.kind == names {
			values := valuesOf(flag)
			if len(values) != 1 {
				return nil, usagef("--removed: --%s takes one value, got %d", f.flag(), len(values))
			}
			value = values[0]
		}
		query.Set(name, value)
	}
	return query, nil
}

// runRemoved prints removed findings with the reason, as a table or as JSON: one object per page.
func (o *findingsOptions) runRemoved(cmd *cobra.Command, std streams) error {
	if err := oneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	query, err := removedQuery(cmd)
	if err != nil {
		return err
	}
	c, err := o.client.newClient(std)
	if err != nil {
		return err
	}
	slug, err := c.resolveDeployment(cmd.Context(), o.client.deployment)
	if err != nil {
		return err
	}
	d := &deploymentClient{client: c, deploymentID: slug}
	if o.all && query.Get("limit") == "" {
		query.Set("limit", strconv.Itoa(maxRemoved))
	}
	count, table := 0, printout.NewTable(std.out)
	if o.output == "table" {
		_, _ = fmt.Fprintln(table, "SEVERITY\tRULE\tLOCATION\tPROJECT\tREF\tID\tREMOVED\tREASON")
	}
	for {
		raw, err := d.send(cmd.Context(), http.MethodGet, "api/v1", query, nil, "removed-findings")
		if err != nil {
			return err
		}
		var page findingsv1.ListRemovedFindingsResponse
		if err := decode(raw, &page); err != nil {
			return err
		}
		if count += len(page.GetFindings()); o.output == "json" {
			_, _ = fmt.Fprintf(std.out, "%s\n", raw)
		} else {
			printRemoved(table, page.GetFindings())
		}
		if page.GetCursor() == "" || !o.all {
			return o.endRemoved(std, table, count, page.GetCursor() != "")
		}
		query.Set("cursor", page.GetCursor())
	}
}

func printRemoved(table *printout.Table, list []*findingsv1.RemovedFinding) {
	for _, f := range list {
		at := orDash(f.GetPath())
		if f.GetPath() != "" && f.GetLine() > 0 {
			at += ":" + strconv.Itoa(int(f.GetLine()))
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", orDash(f.GetSeverity()), orDash(f.GetRuleName()), at, orDash(f.GetProject()),
			orDash(f.GetRef()), f.GetId(), day(f.GetRemovedAt().AsTime()), orDash(f.GetReason()))
	}
}

func (o *findingsOptions) endRemoved(std streams, table *printout.Table, count int, more bool) error {
	if o.output == "json" {
		return nil
	}
	if err := table.Flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("%d removed findings.", count)
	if more {
		text = fmt.Sprintf("%d removed findings; there are more: --all.", count)
	}
	_, _ = fmt.Fprintln(std.err, text)
	return nil
}
