package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newFindingsTriage(std streams) *cobra.Command {
	var flags clientFlags
	var selection triageSelection
	var yes, preview bool
	cmd := &cobra.Command{
		Use:   "triage",
		Short: "Triage all findings that a filter selects, after a preview",
		Long: `Triage all findings that the flags select, in one transaction: set a state, a reason and a note. First the
command prints how many findings would change, by status, with ten examples, and asks. It then changes exactly
these findings. If somebody decided about one of them meanwhile, it changes nothing and says so.

Findings with the same identity on other refs are triaged, too. Where developers may not ignore findings but may
request exceptions, ignoring them requests exceptions; see "palisade findings exceptions".

Every decision can be undone: "palisade findings triage changes" lists them, "palisade findings triage undo"
restores each finding that nobody has changed since.`,
		Example: `  palisade findings triage --rules py.sqli --repos acme/web --state ignored --reason false_positive --note "test data"
  palisade findings triage --severities low --status open --since 30d --state reviewing --preview
  palisade findings triage --ids 4711,4712 --state fixing --yes
  palisade findings triage --filter '{"onPrimaryBranch":true,"cves":["CVE-2026-1"]}' --state fixing
  palisade findings triage undo 17`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			request, err := selection.request(std.now())
			if err != nil {
				return err
			}
			c, err := openTriage(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			return c.update(cmd.Context(), std, request, preview, yes)
		},
	}
	flags.add(cmd)
	selection.add(cmd)
	cmd.Flags().BoolVar(&preview, "preview", false, "print the preview and change nothing")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.MarkFlagsMutuallyExclusive("preview", "yes")
	cmd.AddCommand(newTriageUndo(std), newTriageChanges(std))
	return cmd
}

// triageClient calls the API of triage changes of one deployment.
type triageClient struct{ *deploymentClient }

func openTriage(ctx context.Context, flags clientFlags, std streams) (*triageClient, error) {
	d, err := openDeployment(ctx, flags, std)
	return &triageClient{d}, err
}

// call sends a message and decodes the response.
func (c *triageClient) call(ctx context.Context, method string, request, response proto.Message, path ...string) error {
	body, err := protojson.Marshal(request)
	if err != nil {
		return err
	}
	raw, err := c.send(ctx, method, "api/agent", nil, json.RawMessage(body), path...)
	if err != nil {
		return err
	}
	return decode(raw, response)
}

// update previews an update, asks, and makes it.
func (c *triageClient) update(ctx context.Context, std streams, request *findingsv1.PreviewBulkUpdateRequest, previewOnly, yes bool) error {
	var shown findingsv1.PreviewBulkUpdateResponse
	if err := c.call(ctx, http.MethodPost, request, &shown, "findings", "v2", "preview"); err != nil {
		return err
	}
	if err := printPreview(std, &shown); err != nil {
		return err
	}
	if previewOnly || shown.GetUpdatedCount() == 0 && shown.GetNumExceptionsRequested() == 0 {
		return nil
	}
	if !yes && !ask(std, "Go ahead?") {
		_, _ = fmt.Fprintln(std.err, "Nothing was changed. Use --yes where nobody can answer.")
		return nil
	}
	var done findingsv1.BulkUpdateIssuesResponse
	err := c.call(ctx, http.MethodPatch, &findingsv1.BulkUpdateIssuesRequest{
		Filter: request.GetFilter(), Params: request.GetParams(), IssueTypes: request.GetIssueTypes(), PreviewToken: shown.GetPreviewToken(),
	}, &done, "findings", "v2")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(std.out, triageOutcome(done.GetUpdatedCount(), done.GetNumExceptionsRequested(), "were changed", "exceptions were requested")); err != nil {
		return err
	}
	if done.GetChangeId() != 0 {
		_, _ = fmt.Fprintf(std.err, "Change %d. Undo it with: palisade findings triage undo %d\n", done.GetChangeId(), done.GetChangeId())
	}
	return nil
}

func triageOutcome(changed, requested int32, changing, requesting string) string {
	text := fmt.Sprintf("%d findings %s", changed, changing)
	if requested > 0 {
		text += fmt.Sprintf(", %d %s", requested, requesting)
	}
	return text + "."
}

func printPreview(std streams, shown *findingsv1.PreviewBulkUpdateResponse) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "STATUS NOW\tFINDINGS")
	for _, status := range shown.GetStatuses() {
		_, _ = fmt.Fprintf(table, "%s\t%d\n", printable(status.GetStatus()), status.GetCount())
	}
	_, _ = fmt.Fprintf(table, "selected\t%d\n", shown.GetIssueCount())
	if shown.NumSkipped != nil {
		_, _ = fmt.Fprintf(table, "skipped\t%d\n", shown.GetNumSkipped())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(shown.GetExamples()) > 0 {
		_, _ = fmt.Fprintln(std.out)
		table = printout.NewTable(std.out)
		_, _ = fmt.Fprintln(table, "FINDING\tSTATUS\tSEVERITY\tPROJECT\tREF\tRULE\tLOCATION")
		for _, f := range shown.GetExamples() {
			location := orDash(f.GetFilePath())
			if f.GetLine() > 0 {
				location += fmt.Sprintf(":%d", f.GetLine())
			}
			_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", f.GetFindingId(), printable(f.GetStatus()), printable(f.GetSeverity()),
				orDash(f.GetProject()), orDash(f.GetRef()), orDash(f.GetRuleName()), location)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(std.out, "\n%s\n", triageOutcome(shown.GetUpdatedCount(), shown.GetNumExceptionsRequested(), "on all refs would change", "exceptions would be requested"))
	return err
}

// ask asks a question on the terminal. Everything but y and yes is no, also the end of the input.
func ask(std streams, question string) bool {
	_, _ = fmt.Fprint(std.err, question+" [y/N] ")
	answer, _ := bufio.NewReader(std.in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}
