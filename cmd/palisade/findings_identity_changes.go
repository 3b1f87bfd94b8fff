package main

import (
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
	var l listing
	var findingID, projectID int64
	cmd := &cobra.Command{
		Use:   "identity-changes",
		Short: "List splits and merges, newest first",
		Example: `  palisade findings identity-changes --limit 20
  palisade findings identity-changes --finding 4711 -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
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
			return l.print(std, query, "changes", 1000, func(query url.Values) (json.RawMessage, error) {
				return i.send(cmd.Context(), http.MethodGet, "api/v1", query, nil, "identity-changes")
			}, func(raw json.RawMessage) error {
				var page findingsv1.ListIdentityChangesResponse
				if err := decode(raw, &page); err != nil {
					return err
				}
				return printChanges(std, page.GetChanges())
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().Int64Var(&findingID, "finding", 0, "only changes of the finding with this `id`")
	cmd.Flags().Int64Var(&projectID, "project-id", 0, "only changes in the project with this `id`")
	l.add(cmd, 100, "changes")
	return cmd
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
