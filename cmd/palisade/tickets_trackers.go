package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/structpb"

	ticketingv1 "github.com/palisade/palisade/gen/palisade/ticketing/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newTrackers(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trackers",
		Short: "Connect issue trackers: Jira, GitHub Issues, GitLab issues",
		Long: `Connect issue trackers. It needs the role of an administrator.

The token needs these permissions: Jira: create, edit and comment on issues in the projects. GitHub: issues, read and
write (fine-grained) or repo (classic). GitLab: the scope api, as a member with the role Reporter or above. GitLab's
tickets are confidential; GitHub and Jira have no such switch, so choose projects that only the right people read.`,
		Example: `  palisade tickets trackers add jira --url https://acme.atlassian.net --user bot@acme.example --project SEC --token-file jira.token
  palisade tickets trackers add github --project acme/security --map "acme/web=acme/web" --token-file -
  palisade tickets trackers check 1`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTrackersList(std), newTrackersAdd(std), newTrackersEdit(std), newTrackersCheck(std), newTrackersRemove(std))
	return cmd
}

func newTrackersList(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the connected trackers",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			t, err := openTicketing(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			list, raw, err := t.trackers(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = fmt.Fprintf(std.out, "%s\n", raw)
				return err
			}
			return printTrackers(std, list.GetInstances()...)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func printTrackers(std streams, list ...*ticketingv1.TicketingInstance) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "ID\tKIND\tURL\tPROJECT\tMAPPINGS\tTYPE\tLABELS\tTOKEN")
	for _, i := range list {
		token := "accepted or not tried"
		if i.GetIsAuthRevoked() {
			token = "refused by the tracker"
		}
		pairs := make([]string, len(i.GetMappings()))
		for n, m := range i.GetMappings() {
			pairs[n] = m.GetRepository() + "=" + m.GetProjectId()
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.GetId(), printable(i.GetInstanceType()), printable(i.GetBaseUrl()),
			orDash(i.GetProjectId()), orDash(strings.Join(pairs, " ")), orDash(i.GetIssueTypeId()), orDash(strings.Join(i.GetLabels(), ",")), token)
	}
	return table.Flush()
}

// trackerFlags are the settings of a tracker that can be changed.
type trackerFlags struct {
	project, issueType, user, fields, tokenFile    string
	closeAt, transition, closedState, closedReason string
	labels, mappings, automatic                    []string
}

func (f *trackerFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.project, "project", "", "project for tickets: a key of Jira (SEC) or a repository (acme/web)")
	fs.StringArrayVar(&f.mappings, "map", nil, "another project for some repositories, as `NAME=PROJECT`; NAME may be acme/* or acme/**; the first match counts; may be repeated")
	fs.StringVar(&f.issueType, "issue-type", "", "type of Jira's issues, by name or id (default: Task, or the first type of the project)")
	fs.StringVar(&f.fields, "fields", "", "more fields of Jira's issues, as its API takes them, in `JSON`")
	fs.StringSliceVar(&f.labels, "labels", nil, "labels of the tickets")
	fs.StringSliceVar(&f.automatic, "automatic", nil, "products whose new critical and high findings get tickets: sast, sca, secrets, ai_sast, malicious (dependencies)")
	fs.StringVar(&f.closeAt, "close-at", "", "close a ticket when all its findings are fixed, or are fixed or ignored: `STATE` is fixed or ignored")
	fs.StringVar(&f.transition, "transition", "", "with --close-at: id of Jira's transition (default: the first that closes)")
	fs.StringVar(&f.closedState, "closed-state", "", "new state of open findings whose ticket a person closed: ignored, reviewing or fixing")
	fs.StringVar(&f.closedReason, "closed-reason", "", "with --closed-state ignored: acceptable_risk, false_positive, no_time, no_triage_reason or duplicate")
	fs.StringVar(&f.user, "user", "", "e-mail address of the token's account; needed for Jira Cloud")
	fs.StringVar(&f.tokenFile, "token-file", "", "`file` with the token; - is standard input")
}

// token reads the token; "" without --token-file.
func (f *trackerFlags) token(std streams) (string, error) {
	var text []byte
	var err error
	switch f.tokenFile {
	case "":
		return "", nil
	case "-":
		text, err = io.ReadAll(io.LimitReader(std.in, 8192))
	default:
		text, err = os.ReadFile(f.tokenFile)
	}
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("%s has no token", f.tokenFile)
	}
	return token, nil
}

func (f *trackerFlags) pairs() (list []*ticketingv1.ProjectMapping, err error) {
	for _, m := range f.mappings {
		name, project, ok := strings.Cut(m, "=")
		if !ok || name == "" || project == "" {
			return nil, usagef("--map must have the form NAME=PROJECT, got %q", m)
		}
		list = append(list, &ticketingv1.ProjectMapping{Repository: name, ProjectId: project})
	}
	return list, nil
}

func (f *trackerFlags) object() (*structpb.Struct, error) {
	if f.fields == "" {
		return nil, nil
	}
	out := &structpb.Struct{}
	if err := json.Unmarshal([]byte(f.fields), out); err != nil {
		return nil, usagef("--fields must be a JSON object: %s", err)
	}
	return out, nil
}

// states are the products of --automatic.
func (f *trackerFlags) states() (*ticketingv1.AutomationStates, error) {
	out := &ticketingv1.AutomationStates{}
	fields := map[string]*bool{"sast": &out.Sast, "sca": &out.Sca, "secrets": &out.Secrets, "ai_sast": &out.AiSast, "malicious": &out.ScaMaliciousDeps}
	for _, product := range f.automatic {
		if err := oneOf("automatic", product, "sast", "sca", "secrets", "ai_sast", "malicious"); err != nil {
			return nil, err
		}
		*fields[product] = true
	}
	return out, nil
}

// closing is when tickets are closed in the tracker; nil: never.
func (f *trackerFlags) closing() *ticketingv1.JiraTransition {
	if f.closeAt == "" {
		return nil
	}
	return &ticketingv1.JiraTransition{SemgrepAggregateState: f.closeAt, JiraTransitionId: f.transition}
}

func newTrackersAdd(std streams) *cobra.Command {
	var flags clientFlags
	var settings trackerFlags
	var address string
	cmd := &cobra.Command{
		Use:   "add KIND",
		Short: "Connect a tracker: github, gitlab, jira (Cloud) or jira-data-center",
		Long: `Connect a tracker, and try its token and projects. The tracker stays connected if the try fails: mend it with
"palisade tickets trackers edit".`,
		Example: `  palisade tickets trackers add jira --url https://acme.atlassian.net --user bot@acme.example --project SEC --token-file jira.token
  palisade tickets trackers add gitlab --url https://git.acme.example --project acme/security --token-file -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := settings.newTracker(std, args[0], address)
			if err != nil {
				return err
			}
			t, err := openTicketing(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			out := &ticketingv1.CreateTicketingInstanceResponse{}
			if _, err := t.call(cmd.Context(), http.MethodPost, request, out); err != nil {
				return err
			}
			if err := printTrackers(std, out.GetInstance()); err != nil {
				return err
			}
			return t.check(cmd.Context(), std, fmt.Sprint(out.GetInstance().GetId()))
		},
	}
	flags.add(cmd)
	settings.add(cmd)
	cmd.Flags().StringVar(&address, "url", "", "web address of the tracker (default for github and gitlab: the cloud service)")
	_ = cmd.MarkFlagRequired("token-file")
	return cmd
}

func (f *trackerFlags) newTracker(std streams, kind, address string) (*ticketingv1.CreateTicketingInstanceRequest, error) {
	pairs, err := f.pairs()
	if err != nil {
		return nil, err
	}
	fields, err := f.object()
	if err != nil {
		return nil, err
	}
	states, err := f.states()
	if err != nil {
		return nil, err
	}
	token, err := f.token(std)
	if err != nil {
		return nil, err
	}
	return &ticketingv1.CreateTicketingInstanceRequest{Token: token, Instance: &ticketingv1.TicketingInstance{
		InstanceType: kind, BaseUrl: address, User: f.user, ProjectId: f.project, IssueTypeId: f.issueType, Fields: fields, Labels: f.labels, Mappings: pairs,
		AutomationStates: states, FixedTransitionState: f.closing(), ClosedState: f.closedState, ClosedReason: f.closedReason,
	}}, nil
}

func newTrackersEdit(std streams) *cobra.Command {
	var flags clientFlags
	var settings trackerFlags
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change settings of a tracker, and try it",
		Long: `Change the settings of a tracker that the flags name, and try its token and projects. --labels and --map replace
both lists; --close-at, --transition, --closed-state and --closed-reason replace all four: name the ones to keep.
--automatic "" switches all products off.`,
		Example: `  palisade tickets trackers edit 1 --project SEC --issue-type Bug
  palisade tickets trackers edit 1 --automatic sast,secrets,malicious
  palisade tickets trackers edit 1 --close-at fixed --closed-state ignored --closed-reason acceptable_risk
  palisade tickets trackers edit 1 --token-file new.token`,
		Args: numbers("the id of a tracker"),
		RunE: func(cmd *cobra.Command, args []string) error {
			request, err := settings.change(cmd, std)
			if err != nil {
				return err
			}
			t, err := openTicketing(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			out := &ticketingv1.UpdateTicketingInstanceResponse{}
			if _, err := t.call(cmd.Context(), http.MethodPatch, request, out, args[0]); err != nil {
				return err
			}
			if err := printTrackers(std, out.GetInstance()); err != nil {
				return err
			}
			return t.check(cmd.Context(), std, args[0])
		},
	}
	flags.add(cmd)
	settings.add(cmd)
	return cmd
}

func (f *trackerFlags) change(cmd *cobra.Command, std streams) (*ticketingv1.UpdateTicketingInstanceRequest, error) {
	request := &ticketingv1.UpdateTicketingInstanceRequest{}
	for name, at := range map[string]struct {
		value *string
		field **string
	}{"project": {&f.project, &request.ProjectId}, "issue-type": {&f.issueType, &request.IssueTypeId}, "user": {&f.user, &request.User}} {
		if cmd.Flags().Changed(name) {
			*at.field = at.value
		}
	}
	pairs, err := f.pairs()
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("labels") || cmd.Flags().Changed("map") {
		request.Lists = &ticketingv1.TicketingLists{Labels: f.labels, Mappings: pairs}
	}
	if cmd.Flags().Changed("automatic") {
		if request.AutomationStates, err = f.states(); err != nil {
			return nil, err
		}
	}
	if flags := cmd.Flags(); flags.Changed("close-at") || flags.Changed("transition") || flags.Changed("closed-state") || flags.Changed("closed-reason") {
		request.Closing = &ticketingv1.TicketClosing{FixedTransitionState: f.closing(), ClosedState: f.closedState, ClosedReason: f.closedReason}
	}
	if request.Fields, err = f.object(); err != nil {
		return nil, err
	}
	token, err := f.token(std)
	if token != "" {
		request.Token = &token
	}
	return request, err
}

func newTrackersCheck(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:     "check ID",
		Short:   "Try the token and the projects of a tracker",
		Example: `  palisade tickets trackers check 1`,
		Args:    numbers("the id of a tracker"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTicketing(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			return t.check(cmd.Context(), std, args[0])
		},
	}
	flags.add(cmd)
	return cmd
}

// check tries a tracker. What is wrong is an error.
func (t *ticketing) check(ctx context.Context, std streams, id string) error {
	out := &ticketingv1.CheckTicketingInstanceResponse{}
	if _, err := t.call(ctx, http.MethodPost, &ticketingv1.CheckTicketingInstanceRequest{}, out, id, "check"); err != nil {
		return err
	}
	for _, problem := range out.GetProblems() {
		_, _ = fmt.Fprintln(std.err, printable(problem))
	}
	if !out.GetOk() {
		return fmt.Errorf("tracker %s cannot be used as it is", id)
	}
	_, err := fmt.Fprintf(std.out, "Tracker %s accepts the token and has the projects.\n", id)
	return err
}

func newTrackersRemove(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:     "remove ID",
		Short:   "Disconnect a tracker; findings keep the links to its tickets",
		Example: `  palisade tickets trackers remove 1`,
		Args:    numbers("the id of a tracker"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTicketing(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			if _, err := t.call(cmd.Context(), http.MethodDelete, nil, &ticketingv1.DeleteTicketingInstanceResponse{}, args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(std.out, "Tracker %s is disconnected.\n", args[0])
			return err
		},
	}
	flags.add(cmd)
	return cmd
}
