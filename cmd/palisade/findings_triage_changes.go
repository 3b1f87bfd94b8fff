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

func newTriageUndo(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "undo CHANGE",
		Short: "Undo a decision about findings",
		Long: `Undo a decision about findings: restore the state, the reason and the note of each finding that nobody has
changed since. The command says which findings it could not restore, and why. An undo is a change, too: undo it to
make the decision again.`,
		Example: `  palisade findings triage changes
  palisade findings triage undo 17`,
		Args: numbers("the number of a change"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := openTriage(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var done findingsv1.UndoTriageChangeResponse
			if err := c.call(cmd.Context(), http.MethodPost, &findingsv1.UndoTriageChangeRequest{}, &done, "findings", "v2", "undo", args[0]); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(std.out, "%d findings were restored, %d stay as they are.\n", done.GetRestoredCount(), done.GetKeptCount()); err != nil {
				return err
			}
			for _, kept := range done.GetKept() {
				if _, err := fmt.Fprintln(std.out, keptLine(kept)); err != nil {
					return err
				}
			}
			if done.GetChange() != nil {
				_, _ = fmt.Fprintf(std.err, "Change %d. Undo it with: palisade findings triage undo %d\n", done.GetChange().GetId(), done.GetChange().GetId())
			}
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}

// keptLine says which findings an undo kept, and why.
func keptLine(kept *findingsv1.KeptFindings) string {
	why := map[findingsv1.KeptReason]string{
		findingsv1.KeptReason_KEPT_REASON_CHANGED_SINCE: "changed since",
		findingsv1.KeptReason_KEPT_REASON_NOT_VISIBLE:   "not visible to you",
		findingsv1.KeptReason_KEPT_REASON_GONE:          "deleted with their projects",
	}[kept.GetReason()]
	ids := make([]string, len(kept.GetFindingIds()))
	for i, id := range kept.GetFindingIds() {
		ids[i] = strconv.FormatInt(id, 10)
	}
	line := fmt.Sprintf("  %d %s", kept.GetCount(), why)
	if len(ids) > 0 {
		line += ": " + strings.Join(ids, ", ")
	}
	if len(ids) < int(kept.GetCount()) && len(ids) > 0 {
		line += ", …"
	}
	return line
}

func newTriageChanges(std streams) *cobra.Command {
	var flags clientFlags
	var l listing
	var findingID int64
	cmd := &cobra.Command{
		Use:   "changes",
		Short: "List the decisions that can be undone, newest first",
		Long: `List the decisions about findings that can be undone, newest first. Administrators see all of them, others their
own. The server keeps them for 90 days by default.`,
		Example: `  palisade findings triage changes
  palisade findings triage changes --finding 4711 -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			c, err := openTriage(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			query := url.Values{}
			if findingID != 0 {
				query.Set("findingId", strconv.FormatInt(findingID, 10))
			}
			return l.print(std, query, "changes", 1000, func(query url.Values) (json.RawMessage, error) {
				return c.send(cmd.Context(), http.MethodGet, "api/agent", query, nil, "findings", "v2", "changes")
			}, func(raw json.RawMessage) error {
				var page findingsv1.ListTriageChangesResponse
				if err := decode(raw, &page); err != nil {
					return err
				}
				return printTriageChanges(std, page.GetChanges())
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().Int64Var(&findingID, "finding", 0, "only decisions about the finding with this `id`")
	l.add(cmd, 100, "changes")
	return cmd
}

func printTriageChanges(std streams, changes []*findingsv1.TriageChange) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "CHANGE\tKIND\tSTATE\tREASON\tSELECTED\tCHANGED\tBY\tAT\tUNDOES\tUNDONE BY\tNOTE")
	for _, c := range changes {
		by := fmt.Sprintf("%s %d", printable(c.GetActorKind()), c.GetActorId())
		if c.GetActorName() != "" {
			by = printable(c.GetActorName())
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", c.GetId(), enumWord(c.GetKind(), "TRIAGE_CHANGE_KIND_"),
			enumWord(c.GetTriageState(), "FINDING_TRIAGE_STATE_"), enumWord(c.GetTriageReason(), "FINDING_TRIAGE_REASON_"), c.GetIssueCount(), c.GetUpdatedCount(),
			by, day(c.GetAt().AsTime()), idOrDash(c.UndoesId), idOrDash(c.UndoneBy), orDash(c.GetNote()))
	}
	return table.Flush()
}

// enumWord is an enum value for people; "-" if it is not set.
func enumWord[E interface {
	~int32
	fmt.Stringer
}](value E, prefix string) string {
	if value == 0 {
		return "-"
	}
	return strings.ToLower(strings.TrimPrefix(value.String(), prefix))
}

func idOrDash(id *int64) string {
	if id == nil {
		return "-"
	}
	return strconv.FormatInt(*id, 10)
}
