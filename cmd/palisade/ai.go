package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newAI(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ai",
		Short:   "Look at the analyses and fixes of the language model",
		Example: "  palisade ai status",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAIStatus(std))
	return cmd
}

func newAIStatus(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the model, the quota, the tasks, and why analyses and fixes failed",
		Long: `Shows the model that the deployment uses, the quota that is used and left, the analyses and fixes that were
requested this month (UTC), the latest 20 tasks, and the latest 20 failures with their reasons. Failed analyses and
fixes give their quota back.`,
		Example: `  palisade ai status
  palisade ai status -o json | jq -r '.failedAnalyses[].error' | sort | uniq -c`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			c, err := flags.newClient(std)
			if err != nil {
				return err
			}
			id, err := c.deploymentID(cmd.Context(), flags.deployment)
			if err != nil {
				return err
			}
			req, err := c.request(cmd.Context(), http.MethodGet, nil, nil, "api", "ai", id, "status")
			if err != nil {
				return err
			}
			var raw json.RawMessage
			if err := c.do(req, &raw); err != nil {
				return err
			}
			if output == "json" {
				return printJSON(std.out, raw)
			}
			var status aiv1.GetAiStatusResponse
			if err := decode(raw, &status); err != nil {
				return err
			}
			return printAIStatus(std.out, &status)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func printAIStatus(w io.Writer, s *aiv1.GetAiStatusResponse) error {
	table := printout.NewTable(w)
	_, _ = fmt.Fprintf(table, "Model:\t%s\n", orDash(s.GetModel()))
	if reason := s.GetDisabledReason(); reason != "" {
		_, _ = fmt.Fprintf(table, "Disabled:\t%s\n", printable(reason))
	}
	_, _ = fmt.Fprintf(table, "Quota of the month:\t%s\n", quota(s.GetMonth(), s.GetDisabledReason()))
	_, _ = fmt.Fprintf(table, "Quota of the hour:\t%s\n", quota(s.GetHour(), s.GetDisabledReason()))
	_, _ = fmt.Fprintf(table, "Analyses this month:\t%s\n", counts(s.GetAnalyses()))
	_, _ = fmt.Fprintf(table, "Fixes this month:\t%s\n", counts(s.GetFixes()))
	_, _ = fmt.Fprintf(table, "Cost of the analyses:\t%s US dollars\n", money(s.GetCostUsd()))
	if len(s.GetTasks()) > 0 {
		_, _ = fmt.Fprintln(table, "\nTASK\tCREATED\tFINDINGS\tWAITING\tDONE\tFAILED\tCHAINS")
	}
	for _, t := range s.GetTasks() {
		chains := make([]string, len(t.GetChains()))
		for i, chain := range t.GetChains() {
			chains[i] = strings.ToLower(strings.TrimPrefix(chain.String(), "CHAIN_"))
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%d\t%d\t%s\n", t.GetGroupId(), instant(t.GetCreatedAt().AsTime()), t.GetNumAnalyzed(),
			t.GetAnalyses().GetPending(), t.GetAnalyses().GetDone(), t.GetAnalyses().GetFailed(), strings.Join(chains, ","))
	}
	if len(s.GetFailedAnalyses())+len(s.GetFailedFixes()) > 0 {
		_, _ = fmt.Fprintln(table, "\nFAILED\tFINDING\tENDED\tREASON")
	}
	failure := func(kind string, id, finding int64, at *timestamppb.Timestamp, reason string) {
		ended := "will be retried"
		if at != nil {
			ended = instant(at.AsTime())
		}
		_, _ = fmt.Fprintf(table, "%s %d\t%d\t%s\t%s\n", kind, id, finding, ended, orDash(reason))
	}
	for _, a := range s.GetFailedAnalyses() {
		failure("analysis", a.GetId(), a.GetIssueId(), a.GetFinishedAt(), a.GetError())
	}
	for _, f := range s.GetFailedFixes() {
		failure("fix", f.GetId(), f.GetIssueId(), f.GetFinishedAt(), f.GetError())
	}
	return table.Flush()
}

// quota shows a quota. Nothing of it is left while nothing can be analyzed.
func quota(of *aiv1.UsageInfo, disabled string) string {
	left, why := max(0, of.GetMaxAllowed()-of.GetUsed()), ""
	if disabled != "" {
		left, why = 0, " ("+printable(disabled)+")"
	}
	return fmt.Sprintf("%d used, %d left of %d%s", of.GetUsed(), left, of.GetMaxAllowed(), why)
}

// money shows an amount with at least two decimals and two significant digits: a short analysis costs less than a cent.
func money(amount float64) string {
	const most = 9
	digits := 2
	for digits < most && amount > 0 && amount*math.Pow10(digits) < 9.5 {
		digits++
	}
	return strconv.FormatFloat(amount, 'f', digits, 64)
}

func counts(c *aiv1.AnalysisCounts) string {
	return fmt.Sprintf("%d waiting, %d done, %d failed", c.GetPending(), c.GetDone(), c.GetFailed())
}
