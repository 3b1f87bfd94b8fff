package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newTickets(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tickets",
		Short: "Create tickets for findings in an issue tracker, and link them",
		Long: `Create tickets for findings in Jira, GitHub Issues or GitLab issues, and link findings to tickets that exist.
First an administrator connects a tracker: see "palisade tickets trackers --help".`,
		Example: `  palisade tickets create --severities critical --primary
  palisade tickets link https://acme.atlassian.net/browse/SEC-12 4711 4712
  palisade tickets unlink 4711`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTicketsCreate(std), newTicketsLink(std), newTicketsUnlink(std), newTrackers(std))
	return cmd
}

// ticketing calls the API of tickets of one deployment.
type ticketing struct{ *deploymentClient }

func openTicketing(ctx context.Context, flags clientFlags, std streams) (*ticketing, error) {
	c, err := openDeployment(ctx, flags, std)
	return &ticketing{c}, err
}

// call sends a request below ticketing/v2 and decodes the response into result. body may be nil.
func (t *ticketing) call(ctx context.Context, method string, body, result proto.Message, path ...string) (json.RawMessage, error) {
	var content any
	if body != nil {
		encoded, err := protojson.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = json.RawMessage(encoded)
	}
	raw, err := t.send(ctx, method, "api/notifications", nil, content, append([]string{"ticketing", "v2"}, path...)...)
	if err != nil {
		return nil, err
	}
	return raw, decode(raw, result)
}

// trackers lists the trackers.
func (t *ticketing) trackers(ctx context.Context) (*ticketingv1.GetTicketingTicketingInstancesResponse, json.RawMessage, error) {
	out := &ticketingv1.GetTicketingTicketingInstancesResponse{}
	raw, err := t.call(ctx, http.MethodGet, nil, out)
	return out, raw, err
}

// tracker returns the id of the tracker to use: the given one, or the only one.
func (t *ticketing) tracker(ctx context.Context, given int64) (string, error) {
	if given != 0 {
		return strconv.FormatInt(given, 10), nil
	}
	list, _, err := t.trackers(ctx)
	switch n := len(list.GetInstances()); {
	case err != nil:
		return "", err
	case n == 0:
		return "", fmt.Errorf("no tracker is connected: an administrator connects one with palisade tickets trackers add")
	case n > 1:
		return "", usagef("say which of the %d trackers: --tracker ID (palisade tickets trackers list shows them)", n)
	}
	return strconv.FormatInt(list.GetInstances()[0].GetId(), 10), nil
}

func newTicketsCreate(std streams) *cobra.Command {
	var flags clientFlags
	var selection findingSelection
	var tracker int64
	var output string
	var each bool
	request := &ticketingv1.TicketingCreateTicketsRequest{}
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create tickets for the findings that the flags select",
		Long: `Create tickets for the findings that the flags select: by default open ones without a ticket. Findings of one rule
in one project share a ticket, up to 75. A call creates at most 20 tickets and says what is left; repeat it for the
rest. A finding never gets a second ticket, also when a call is repeated because its answer was lost.

The command ends with status 1 if a finding got no ticket.`,
		Example: `  palisade tickets create --severities critical,high --primary
  palisade tickets create --ids 4711,4712 --each --project SEC
  palisade tickets create --rules py.sqli --repos acme/web -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			filter, types, err := selection.selected(std.now())
			if err != nil {
				return err
			}
			t, err := openTicketing(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			at, err := t.tracker(cmd.Context(), tracker)
			if err != nil {
				return err
			}
			// The server looks named findings up by their ids, and reports those with a ticket.
			request.IssueFilters, request.IssueIds, request.IssueTypes, request.GroupIssues = filter, filter.GetIds(), types, proto.Bool(!each)
			out := &ticketingv1.TicketingCreateTicketsResponse{}
			raw, err := t.call(cmd.Context(), http.MethodPost, request, out, at, "create_tickets")
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = fmt.Fprintf(std.out, "%s\n", raw)
			} else {
				err = printTickets(std, out)
			}
			if err == nil && len(out.GetFailed()) > 0 {
				err = fmt.Errorf("some findings have no ticket: see above")
			}
			return err
		},
	}
	flags.add(cmd)
	selection.add(cmd)
	cmd.Flags().Int64Var(&tracker, "tracker", 0, "`id` of the tracker; needed if there are several")
	cmd.Flags().StringVar(&request.ProjectId, "project", "", "project of the tracker, such as SEC or acme/web (default: as the tracker is set up)")
	cmd.Flags().BoolVar(&each, "each", false, "one ticket for each finding")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func printTickets(std streams, out *ticketingv1.TicketingCreateTicketsResponse) error {
	if len(out.GetSucceeded())+len(out.GetSkipped())+len(out.GetFailed()) == 0 {
		_, err := fmt.Fprintln(std.err, "The flags select no findings without a ticket.")
		return err
	}
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "RESULT\tTICKET\tFINDINGS\tURL OR REASON")
	for _, t := range out.GetSucceeded() {
		_, _ = fmt.Fprintf(table, "created\t%s\t%s\t%s\n", printable(t.GetExternalSlug()), idList(t.GetIssueIds()), printable(t.GetTicketUrl()))
	}
	for _, t := range out.GetSkipped() {
		_, _ = fmt.Fprintf(table, "skipped\t-\t%s\t%s\n", idList(t.GetIssueIds()), printable(t.GetReason()))
	}
	for _, t := range out.GetFailed() {
		_, _ = fmt.Fprintf(table, "failed\t-\t%s\t%s\n", idList(t.GetIssueIds()), printable(t.GetError()))
	}
	return table.Flush()
}

// idList prints a few ids and how many more there are.
func idList(ids []int64) string {
	const most = 5
	words := make([]string, 0, most+1)
	for _, id := range ids[:min(len(ids), most)] {
		words = append(words, strconv.FormatInt(id, 10))
	}
	if more := len(ids) - most; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return orDash(strings.Join(words, " "))
}

func newTicketsLink(std streams) *cobra.Command {
	var flags clientFlags
	var tracker int64
	cmd := &cobra.Command{
		Use:   "link URL ID…",
		Short: "Link findings to a ticket that exists",
		Long: `Link findings to a ticket that exists in a connected tracker. Only the link is recorded; the ticket does not change.
A finding has one ticket: a new link replaces the old one.`,
		Example: `  palisade tickets link https://acme.atlassian.net/browse/SEC-12 4711 4712`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args[1:])
			if err != nil {
				return err
			}
			t, err := openTicketing(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			at, err := t.tracker(cmd.Context(), tracker)
			if err != nil {
				return err
			}
			out := &ticketingv1.LinkExternalTicketResponse{}
			request := &ticketingv1.LinkExternalTicketRequest{TicketUrl: args[0], IssueIds: ids}
			if _, err := t.call(cmd.Context(), http.MethodPost, request, out, at, "tickets", "link"); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "%s: %d findings linked, %d of them had another ticket.\n", printable(out.GetExternalSlug()),
				len(out.GetLinkedIssueIds()), len(out.GetReplacedIssueIds()))
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().Int64Var(&tracker, "tracker", 0, "`id` of the tracker; needed if there are several")
	return cmd
}

func newTicketsUnlink(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:     "unlink ID…",
		Short:   "Unlink findings from their tickets, which stay in the tracker",
		Example: `  palisade tickets unlink 4711 4712`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := parseIDs(args)
			if err != nil {
				return err
			}
			t, err := openTicketing(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			// v1 also knows the tickets of trackers that are disconnected.
			raw, err := t.send(cmd.Context(), http.MethodPost, "api/v1", nil, map[string][]int64{"issue_ids": ids}, "tickets", "unlink")
			if err != nil {
				return err
			}
			out := &ticketingv1.UnlinkTicketResponse{}
			if err := decode(raw, out); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "%d findings unlinked.\n", len(out.GetUnlinkedIssueIds()))
			return err
		},
	}
	flags.add(cmd)
	return cmd
}

func parseIDs(args []string) ([]int64, error) {
	ids := make([]int64, len(args))
	for i, arg := range args {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil || id <= 0 {
			return nil, usagef("the id of a finding is a number, got %q", arg)
		}
		ids[i] = id
	}
	return ids, nil
}
