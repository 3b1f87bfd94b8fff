package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newFindingsShow(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one finding with its code, its data flow and its history",
		Long: `Print what is known about one finding: the code, the steps of its data flow, its state on every ref, who
decided what about it, and which scans reported it first and last. The code of secrets is never shown.`,
		Example: `  palisade findings show 4711
  palisade findings show 4711 -o json | jq .activityHistory`,
		Args: numbers("the id of a finding"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "text", "json"); err != nil {
				return err
			}
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			query := url.Values{"includeCodeSnippet": {"true"}, "includeIsArchived": {"true"}}
			raw, err := d.send(cmd.Context(), http.MethodGet, "api/agent", query, nil, "issues", "v2", args[0])
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = fmt.Fprintf(std.out, "%s\n", raw)
				return err
			}
			var issue findingsv1.Issue
			if err := decode(raw, &issue); err != nil {
				return err
			}
			return printIssue(std.out, &issue)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func printIssue(out io.Writer, i *findingsv1.Issue) error {
	w := printout.NewTable(out)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	line("Finding %d: %s", i.GetId(), orDash(i.GetMessage()))
	line("  %s %s, rule %s", enumWord(i.GetSeverity(), "SEVERITY_"), enumWord(i.GetIssueType(), "ISSUE_TYPE_"),
		orDash(i.GetRulePath()))
	place := fmt.Sprintf("%s:%d", printable(i.GetFilePath()), i.GetLine())
	line("  %s of %s", inside(place, printable(i.GetLogicalLocation())), printable(i.GetRepository().GetName()))
	if i.GetLineOfCodeUrl() != "" {
		line("  %s", printable(i.GetLineOfCodeUrl()))
	}
	line("\nState")
	line("  %s\t%s", printable(shortRef(i.GetRef())), stateWord(i.GetAggregateState()))
	for _, other := range i.GetRelatedIssues() {
		line("  %s\t%s\tfinding %d", printable(shortRef(other.GetRef())), stateWord(other.GetAggregateState()), other.GetId())
	}
	if i.GetNote() != "" {
		line("  note: %s", printable(i.GetNote()))
	}
	if t := i.GetExternalTicket(); t != nil {
		line("  ticket: %s %s", printable(t.GetExternalSlug()), printable(t.GetUrl()))
	}
	line("  first detected %s, first scan here %d, last scan %s", minute(i.GetFirstDetectedAt()), i.GetFirstSeenScan().GetId(),
		scanWord(i.GetLastSeenScan()))
	printCode(line, i)
	if len(i.GetActivityHistory()) > 0 {
		line("\nHistory, newest first")
	}
	for _, entry := range i.GetActivityHistory() {
		line("  %s\t%s\t%s\t%s", minute(entry.GetDate()), printable(entry.GetTitle()), orDash(entry.GetActor()),
			orDash(strings.Join(strings.Fields(entry.GetTriageReason()+" "+entry.GetNote()), " ")))
	}
	return w.Flush()
}

// printCode prints the code and the places of the data flow.
func printCode(line func(string, ...any), i *findingsv1.Issue) {
	if i.GetCodeSnippet() != "" {
		line("\nCode")
		for _, text := range strings.Split(strings.TrimRight(i.GetCodeSnippet(), "\n"), "\n") {
			line("  %s", printable(text))
		}
	}
	trace := i.GetDataflowTrace()
	if trace == nil {
		return
	}
	line("\nData flow")
	for _, part := range []struct {
		name   string
		places []*findingsv1.DataflowLocation
	}{{"source", trace.GetTaintSource()}, {"step", trace.GetIntermediateVars()}, {"sink", trace.GetTaintSink()}} {
		for _, at := range part.places {
			line("  %s\t%s:%d", part.name, printable(at.GetPath()), at.GetStart().GetLine())
		}
	}
}

func stateWord(state findingsv1.AggregateIssueState) string {
	return strings.ReplaceAll(enumWord(state, "AGGREGATE_ISSUE_STATE_"), "_", " ")
}

func scanWord(scan *findingsv1.IssueScan) string {
	if scan == nil {
		return "unknown"
	}
	return fmt.Sprint(scan.GetId())
}
