package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newIdentityChanges(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	var findingID, projectID int64
	var limit int
	cmd := &cobra.Command{
		Use:   "identity-changes",
		Short: "List splits and merges, newest first",
		Example: `  palisade findings identity-changes --limit 20
  palisade findings identity-changes --finding 4711 -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			if limit < 1 {
				return usagef("--limit: got %d, want at least 1", limit)
			}
			i, err := openIdentities(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			query := url.Values{}
			for name, id := range map[string]int64{"findingId": findingID, "projectId": projectID} {
				if id != 0 {
					query.Set(name, strconv.FormatInt(id, 10))
				}
			}
			changes, raw, err := i.changes(cmd.Context(), query, limit)
			if err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(std.out).Encode(map[string]any{"changes": raw})
			}
			return printChanges(std, changes)
		},
	}
	flags.add(cmd)
	cmd.Flags().Int64Var(&findingID, "finding", 0, "only changes of the finding with this `id`")
	cmd.Flags().Int64Var(&projectID, "project-id", 0, "only changes in the project with this `id`")
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number of changes")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// changes reads pages until it has limit changes. It returns them decoded and as the server sent them.
func (i *identities) changes(ctx context.Context, query url.Values, limit int) (list []*findingsv1.IdentityChange, raw []json.RawMessage, err error) {
	const most = 1000 // page size
	raw = []json.RawMessage{}
	for {
		query.Set("limit", strconv.Itoa(min(limit-len(list), most)))
		var page findingsv1.ListIdentityChangesResponse
		text, err := i.call(ctx, http.MethodGet, query, nil, &page, "identity-changes")
		if err != nil {
			return nil, nil, err
		}
		var items struct{ Changes []json.RawMessage }
		if err := json.Unmarshal(text, &items); err != nil {
			return nil, nil, err
		}
		list, raw = append(list, page.GetChanges()...), append(raw, items.Changes...)
		if page.GetCursor() == "" || len(list) >= limit {
			return list, raw, nil
		}
		query.Set("cursor", page.GetCursor())
	}
}

func printChanges(std streams, changes []*findingsv1.IdentityChange) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "CHANGE\tWHAT\tFINDING\tOTHER\tPROJECT\tBY\tAT\tUNDONE\tNOTE")
	for _, c := range changes {
		other, undone := "-", "-"
		if c.OtherId != nil {
			other = strconv.FormatInt(c.GetOtherId(), 10)
		}
		if c.GetUndoneAt() != nil {
			undone = day(c.GetUndoneAt().AsTime())
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%d\t%s %d\t%s\t%s\t%s\n", c.GetId(), changeWord(c), c.GetFindingId(), other, c.GetProjectId(),
			orDash(c.GetActorKind()), c.GetActorId(), day(c.GetAt().AsTime()), undone, orDash(c.GetNote()))
	}
	return table.Flush()
}

func changeWord(c *findingsv1.IdentityChange) string {
	return strings.ToLower(strings.TrimPrefix(c.GetKind().String(), "IDENTITY_CHANGE_KIND_"))
}
