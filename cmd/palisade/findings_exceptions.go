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

func newFindingsExceptions(std streams) *cobra.Command {
	var flags clientFlags
	var state string
	var l listing
	cmd := &cobra.Command{
		Use:   "exceptions",
		Short: "List exception requests, and approve or reject them",
		Long: `List requests to ignore findings, newest first.

Where the setting triagePermission of a product is TRIAGE_PERMISSION_REQUEST, developers do not ignore its findings.
They request exceptions: with "palisade findings triage --state ignored", in the console, or with /fp, /ar or
/ignore in a reply to a review comment. An administrator approves (the finding is ignored, with the developer's
reason) or rejects (the finding is to be fixed). Nobody decides about their own requests.`,
		Example: `  palisade findings exceptions --state requested
  palisade findings exceptions approve 7 8
  palisade findings exceptions reject 9 --note "the input is not trusted"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			query := url.Values{}
			if state != "" {
				if err := oneOf("state", state, "requested", "approved", "rejected"); err != nil {
					return err
				}
				query.Set("state", "FINDING_EXCEPTION_REQUEST_STATE_"+strings.ToUpper(state))
			}
			c, err := openTriage(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			return l.print(std, query, "requests", 1000, func(query url.Values) (json.RawMessage, error) {
				return c.send(cmd.Context(), http.MethodGet, "api/agent", query, nil, "exception-requests")
			}, func(raw json.RawMessage) error {
				var page findingsv1.ListExceptionRequestsResponse
				if err := decode(raw, &page); err != nil {
					return err
				}
				return printExceptions(std, page.GetRequests())
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&state, "state", "", "requested, approved or rejected")
	l.add(cmd, 100, "requests")
	cmd.AddCommand(
		exceptionDecider(std, "approve", "Ignore the findings of exception requests, with the reasons of the requesters", findingsv1.ExceptionDecision_EXCEPTION_DECISION_APPROVE),
		exceptionDecider(std, "reject", "Mark the findings of exception requests as to be fixed", findingsv1.ExceptionDecision_EXCEPTION_DECISION_REJECT),
	)
	return cmd
}

func printExceptions(std streams, requests []*findingsv1.ExceptionRequest) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "ID\tSTATE\tFINDING\tSTATUS\tPROJECT\tRULE\tREASON\tBY\tVIA\tAT\tDECIDED BY\tNOTE")
	for _, r := range requests {
		_, _ = fmt.Fprintf(table, "%d\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.GetId(), enumWord(r.GetState(), "FINDING_EXCEPTION_REQUEST_STATE_"),
			r.GetFindingId(), orDash(r.GetFindingStatus()), orDash(r.GetProjectName()), orDash(r.GetRuleName()),
			enumWord(r.GetTriageReason(), "FINDING_TRIAGE_REASON_"), orDash(r.GetRequesterLogin()), enumWord(r.GetSource(), "FINDING_EXCEPTION_REQUEST_SOURCE_"),
			day(r.GetCreatedAt().AsTime()), orDash(r.GetReviewerLogin()), orDash(r.GetNote()))
	}
	return table.Flush()
}

// exceptionDecider is the command that approves or rejects requests.
func exceptionDecider(std streams, verb, short string, decision findingsv1.ExceptionDecision) *cobra.Command {
	var flags clientFlags
	var note string
	cmd := &cobra.Command{
		Use:     verb + " ID…",
		Short:   short,
		Example: "  palisade findings exceptions --state requested\n  palisade findings exceptions " + verb + " 7 8",
		Args: func(cmd *cobra.Command, args []string) error {
			names := make([]string, max(1, len(args)))
			for i := range names {
				names[i] = "the id of a request"
			}
			return numbers(names...)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			request := &findingsv1.ReviewExceptionRequestsRequest{Decision: decision, Note: note}
			for _, arg := range args {
				id, err := strconv.ParseInt(arg, 10, 64)
				if err != nil {
					return err
				}
				request.RequestIds = append(request.RequestIds, id)
			}
			c, err := openTriage(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var done findingsv1.ReviewExceptionRequestsResponse
			if err := c.call(cmd.Context(), http.MethodPost, request, &done, "exception-requests", "review"); err != nil {
				return err
			}
			if err := printExceptions(std, done.GetRequests()); err != nil {
				return err
			}
			for _, id := range done.GetChangeIds() {
				_, _ = fmt.Fprintf(std.err, "Change %d. Undo it with: palisade findings triage undo %d\n", id, id)
			}
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&note, "note", "", "reason of the decision")
	return cmd
}
