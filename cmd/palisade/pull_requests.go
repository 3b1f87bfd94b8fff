package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newPullRequests(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pull-requests",
		Short: "Show what a pull request adds and blocks, and write it at its host",
		Long: `A pull (or merge) request is what a scan or an upload with its ref was about, for example
"palisade upload --ref refs/pull/7/merge". "show" says what it adds to its base and what blocks it now.

With "feedback", Palisade writes that at GitHub and GitLab: commit statuses, which a branch protection can
require and which change with each decision about a finding, one comment, which is edited, and comments on the
lines of new findings, whose threads are resolved with the finding. It needs a connection that reaches the
repository, with the permissions to write commit statuses and comments on pull requests, and a project that is
bound to the repository.`,
		Example: `  palisade pull-requests show --project acme/web 7
  palisade pull-requests feedback --statuses on --comments on`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPullRequestsShow(std), newPullRequestsFeedback(std))
	return cmd
}

func newPullRequestsShow(std streams) *cobra.Command {
	var flags clientFlags
	var projectName, output string
	cmd := &cobra.Command{
		Use:     "show NUMBER --project NAME",
		Short:   "Show what a pull request adds and what blocks it",
		Example: `  palisade pull-requests show --project acme/web 7`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			if number, err := strconv.ParseInt(args[0], 10, 64); err != nil || number <= 0 {
				return fmt.Errorf("the number of a pull request must be a positive number, not %q: see palisade pull-requests show --help", args[0])
			}
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			raw, err := d.send(cmd.Context(), http.MethodGet, "api/v1", url.Values{"project": {projectName}, "number": {args[0]}}, nil, "pull-request")
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = fmt.Fprintf(std.out, "%s\n", raw)
				return err
			}
			var request scansv1.GetPullRequestResponse
			if err := decode(raw, &request); err != nil {
				return err
			}
			return printPullRequest(std.out, &request)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&projectName, "project", "", "`name` of the project")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	_ = cmd.MarkFlagRequired("project")
	return cmd
}

func printPullRequest(out io.Writer, r *scansv1.GetPullRequestResponse) error {
	state := "nothing blocks it"
	if r.GetBlocked() {
		state = "it is blocked"
	}
	_, _ = fmt.Fprintf(out, "%d new, %d fixed, %d ignored; %s.\n", r.GetAdded(), r.GetFixed(), r.GetIgnored(), state)
	for _, b := range r.GetBlockers() {
		_, _ = fmt.Fprintf(out, "blocked by %s: %d %s\n", printable(b.GetName()), b.GetFindings(), printable(b.GetReason()))
	}
	if f := r.GetFeedback(); f != nil {
		_, _ = fmt.Fprintf(out, "at its host: %d statuses of %s, comment %s, %d comments on lines\n",
			len(f.GetStatuses()), orDash(f.GetCommit()), orDash(f.GetCommentId()), f.GetLineComments())
		if f.GetProblem() != "" {
			_, _ = fmt.Fprintf(out, "the last try failed: %s\n", printable(f.GetProblem()))
		}
	}
	table := printout.NewTable(out)
	_, _ = fmt.Fprintln(table, "ID\tNEW\tSEVERITY\tSTATUS\tRULE\tPLACE\tBLOCKED BY")
	for _, f := range r.GetFindings() {
		added := "no"
		if f.GetAdded() {
			added = "yes"
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s:%d\t%s\n", f.GetId(), added, f.GetSeverity(), f.GetStatus(), printable(f.GetRuleName()),
			printable(f.GetPath()), f.GetLine(), printable(orDash(strings.Join(f.GetBlockedBy(), ", "))))
	}
	if n := r.GetFindingsOmitted(); n > 0 {
		_, _ = fmt.Fprintf(table, "%d more are not listed\t\t\t\t\t\t\n", n)
	}
	return table.Flush()
}

func newPullRequestsFeedback(std streams) *cobra.Command {
	var flags clientFlags
	var statuses, comments string
	var lineComments int32
	cmd := &cobra.Command{
		Use:   "feedback",
		Short: "Show or change what is written at source-code hosts",
		Long: `Show what is written about pull requests at their source-code hosts: nothing, by default. With a flag, change it;
this needs an administrator. It holds from the next scan of each pull request on.`,
		Example: `  palisade pull-requests feedback
  palisade pull-requests feedback --statuses on --comments on
  palisade pull-requests feedback --line-comments 10
  palisade pull-requests feedback --comments off`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings := map[string]any{}
			for name, value := range map[string]string{"statuses": statuses, "comments": comments} {
				if !cmd.Flags().Changed(name) {
					continue
				}
				if err := oneOf(name, value, "on", "off"); err != nil {
					return err
				}
				settings[name] = value == "on"
			}
			if cmd.Flags().Changed("line-comments") {
				settings["line_comments"] = lineComments
			}
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			method, body := http.MethodGet, any(nil)
			if len(settings) > 0 {
				method, body = http.MethodPatch, map[string]any{"settings": settings}
			}
			var answer scansv1.UpdatePullRequestFeedbackResponse
			raw, err := d.send(cmd.Context(), method, "api/v1", nil, body, "pull-request-feedback")
			if err != nil {
				return err
			}
			if err := decode(raw, &answer); err != nil {
				return err
			}
			word := map[bool]string{true: "on", false: "off"}
			_, err = fmt.Fprintf(std.out, "statuses %s\ncomments %s\nline comments %d\n",
				word[answer.GetSettings().GetStatuses()], word[answer.GetSettings().GetComments()], answer.GetSettings().GetLineComments())
			return err
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&statuses, "statuses", "", "commit statuses: `on or off`")
	cmd.Flags().StringVar(&comments, "comments", "", "one comment on each pull request with new or blocking findings: `on or off`")
	cmd.Flags().Int32Var(&lineComments, "line-comments", 0, "how many new findings get a comment on their line, 0 to 50; 0 is off")
	return cmd
}
