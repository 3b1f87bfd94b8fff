package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newFindingsExplain(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	var limit int
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Explain the identity of a finding, and how scans matched it",
		Long: `Print the evidence that identifies a finding from scan to scan, how the latest scan matched it and which other
findings it considered, the siblings on other refs, and the changes that people made.`,
		Example: `  palisade findings explain 4711
  palisade findings explain 4711 -o json | jq .latest`,
		Args: numbers("the id of a finding"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "text", "json"); err != nil {
				return err
			}
			i, err := openIdentities(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var answer findingsv1.ExplainMatchResponse
			raw, err := i.call(cmd.Context(), http.MethodGet, url.Values{"limit": {strconv.Itoa(limit)}}, nil, &answer, "findings", args[0], "identity")
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = fmt.Fprintf(std.out, "%s\n", raw)
				return err
			}
			return printExplanation(std.out, &answer)
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, "maximum number of earlier matches, of other refs and of changes, 1 to 100")
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func printExplanation(out io.Writer, e *findingsv1.ExplainMatchResponse) error {
	w := printout.NewTable(out)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	line("Finding %s", identityLine(e.GetFinding()))
	line("  rule %s of %s", orDash(e.GetRuleName()), orDash(strings.TrimSpace(e.GetTool()+" "+e.GetAnalysisCategory())))
	if e.MergedInto != nil {
		line("Merged into finding %d. See: palisade findings explain %d", e.GetMergedInto(), e.GetMergedInto())
	}
	identity := e.GetIdentity()
	if identity.GetFirstScanId() != 0 {
		line("Identity %s, since scan %d of %s, %s", printable(identity.GetName()), identity.GetFirstScanId(),
			printable(shortRef(identity.GetFirstRef())), minute(identity.GetSince()))
	} else {
		line("Identity %s", printable(identity.GetName()))
	}
	line("\nEvidence, strongest first (ladder %d)", identity.GetVersion())
	for _, piece := range e.GetEvidence() {
		line("  %s\t%s", printable(piece.GetRung()), printable(piece.GetMadeOf()))
	}
	if len(e.GetEvidence()) == 0 {
		line("  None yet: the next scan computes it.")
	}
	if e.GetLatest() != nil {
		line("\nLatest")
		printSighting(line, e.GetLatest())
	}
	if len(e.GetEarlier()) > 0 {
		line("\nEarlier matches")
	}
	for _, sighting := range e.GetEarlier() {
		printSighting(line, sighting)
	}
	if len(e.GetOtherRefs()) > 0 {
		line("\nOn other refs")
	}
	for _, sibling := range e.GetOtherRefs() {
		line("  %s", identityLine(sibling))
	}
	if len(e.GetChanges()) > 0 {
		line("\nChanges by people")
	}
	for _, c := range e.GetChanges() {
		line("  %d\t%s\t%s %d\t%s\t%s%s", c.GetId(), changeWord(c), printable(c.GetActorKind()), c.GetActorId(), minute(c.GetAt()),
			orDash(c.GetNote()), undoneWord(c))
	}
	return w.Flush()
}

func undoneWord(c *findingsv1.IdentityChange) string {
	if c.GetUndoneAt() == nil {
		return ""
	}
	return " (undone " + minute(c.GetUndoneAt()) + ")"
}

func printSighting(line func(string, ...any), sighting *findingsv1.IdentitySight) {
	line("  Scan %d of %s, %s: %s", sighting.GetScanId(), printable(shortRef(sighting.GetRef())), minute(sighting.GetAt()), printable(sighting.GetText()))
	if sighting.GetBefore() != nil && sighting.GetAfter() != nil {
		line("    from %s to %s", identityPlace(sighting.GetBefore()), identityPlace(sighting.GetAfter()))
	}
	for _, other := range sighting.GetConsidered() {
		why := "chosen"
		if other.GetRefused() != "" {
			why = other.GetRefused()
		}
		line("    finding %d by %s: %s", other.GetFindingId(), printable(other.GetRung()), printable(why))
	}
}

// identityLine formats a finding as one line.
func identityLine(f *findingsv1.IdentityFinding) string {
	decision := printable(f.GetTriageState())
	if f.GetTriageReason() != "" {
		decision += " (" + printable(f.GetTriageReason()) + ")"
	}
	return fmt.Sprintf("%d on %s: %s, %s, %s", f.GetId(), printable(shortRef(f.GetRef())), printable(f.GetState()), decision, identityPlace(f.GetPlace()))
}

func identityPlace(at *findingsv1.IdentityPlace) string {
	logical := printable(at.GetLogicalLocation())
	switch {
	case at.GetFilePath() != "":
		return inside(fmt.Sprintf("%s:%d", printable(at.GetFilePath()), at.GetLine()), logical)
	case logical != "":
		return logical
	}
	return "no file"
}

func minute(at *timestamppb.Timestamp) string {
	if at == nil {
		return "-"
	}
	return at.AsTime().UTC().Format("2006-01-02 15:04") + "Z"
}
