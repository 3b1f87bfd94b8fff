package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

const (
	// maxRemoved is the largest page of removed findings.
	maxRemoved = 1000
	// shownRemoved is how many a table shows without --all.
	shownRemoved = 100
)

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

// runRemoved prints removed findings with the reason, as a table or as JSON.
func (o *findingsOptions) runRemoved(cmd *cobra.Command, std streams) error {
	rows := listing{output: o.output, limit: o.limit, shown: shownRemoved}
	if err := rows.check(cmd); err != nil {
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
	if text := query.Get("limit"); text != "" { // --page-size
		rows.shown, _ = strconv.Atoi(text)
	}
	if o.all {
		rows.shown = 0
	}
	return rows.print(std, query, "findings", maxRemoved, func(query url.Values) (json.RawMessage, error) {
		return d.send(cmd.Context(), http.MethodGet, "api/v1", query, nil, "removed-findings")
	}, func(raw json.RawMessage) error {
		var page findingsv1.ListRemovedFindingsResponse
		if err := decode(raw, &page); err != nil {
			return err
		}
		return printRemoved(std, page.GetFindings())
	})
}

func printRemoved(std streams, list []*findingsv1.RemovedFinding) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "SEVERITY\tRULE\tLOCATION\tPROJECT\tREF\tID\tREMOVED\tREASON")
	for _, f := range list {
		at := orDash(f.GetPath())
		if f.GetPath() != "" && f.GetLine() > 0 {
			at += ":" + strconv.Itoa(int(f.GetLine()))
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", orDash(f.GetSeverity()), orDash(f.GetRuleName()), at, orDash(f.GetProject()),
			orDash(f.GetRef()), f.GetId(), day(f.GetRemovedAt().AsTime()), orDash(f.GetReason()))
	}
	_, _ = fmt.Fprintf(std.err, "%d removed findings.\n", len(list))
	return table.Flush()
}
