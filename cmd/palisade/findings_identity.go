package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

// identities calls the identity API of one deployment.
type identities struct{ *deploymentClient }

func openIdentities(ctx context.Context, flags clientFlags, std streams) (*identities, error) {
	d, err := openDeployment(ctx, flags, std)
	return &identities{d}, err
}

// call sends a request; body may be nil. It returns the raw response, and decodes it into result.
func (i *identities) call(ctx context.Context, method string, query url.Values, body map[string]string, result proto.Message, path ...string) (json.RawMessage, error) {
	var sent any
	if body != nil {
		sent = body
	}
	raw, err := i.send(ctx, method, "api/v1", query, sent, path...)
	if err != nil {
		return nil, err
	}
	if err := decode(raw, result); err != nil {
		return nil, err
	}
	return raw, nil
}

// numbers requires one id per name; the names are for the error text.
func numbers(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usagef("%s needs %s, got %d arguments", cmd.CommandPath(), strings.Join(names, " and "), len(args))
		}
		for n, arg := range args {
			if id, err := strconv.ParseInt(arg, 10, 64); err != nil || id <= 0 {
				return usagef("%s: got %q, want a number above 0", names[n], printable(arg))
			}
		}
		return nil
	}
}

// identityChanger adds --note to a command that changes identities. The command prints the change and how to undo it.
func identityChanger(std streams, cmd *cobra.Command, send func(ctx context.Context, i *identities, args []string, note string) (*findingsv1.IdentityChange, []*findingsv1.IdentityFinding, error)) *cobra.Command {
	var flags clientFlags
	var note string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		i, err := openIdentities(cmd.Context(), flags, std)
		if err != nil {
			return err
		}
		change, findings, err := send(cmd.Context(), i, args, note)
		if err != nil {
			return err
		}
		for _, f := range findings {
			if _, err := fmt.Fprintln(std.out, identityLine(f)); err != nil {
				return err
			}
		}
		if change.GetUndoneAt() == nil {
			_, _ = fmt.Fprintf(std.err, "Identity change %d. Undo it with: palisade findings undo %d\n", change.GetId(), change.GetId())
		}
		return nil
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&note, "note", "", "reason, stored in the history of the findings")
	return cmd
}

func newFindingsSplit(std streams) *cobra.Command {
	return identityChanger(std, &cobra.Command{
		Use:   "split ID",
		Short: "Declare the latest match of a finding wrong",
		Long: `Declare the latest match of a finding wrong. The finding keeps its id, history and triage decision, returns to
its previous state, and is fixed; a new, untriaged finding takes the result in the code. A finding without
such a match is separated from its siblings on other refs.`,
		Example: `  palisade findings explain 4711
  palisade findings split 4711 --note "the query next to it"`,
		Args: numbers("the id of a finding"),
	}, func(ctx context.Context, i *identities, args []string, note string) (*findingsv1.IdentityChange, []*findingsv1.IdentityFinding, error) {
		var answer findingsv1.SplitFindingResponse
		_, err := i.call(ctx, http.MethodPost, nil, map[string]string{"note": note}, &answer, "findings", args[0], "split")
		return answer.GetChange(), answer.GetFindings(), err
	})
}

func newFindingsMerge(std streams) *cobra.Command {
	return identityChanger(std, &cobra.Command{
		Use:   "merge ID INTO",
		Short: "Declare a finding the same as another one",
		Long: `Declare the finding ID the same as the finding INTO, on all refs of their project. INTO stays, with its triage
decision; if it is untriaged, it takes the decision of ID. At most one of the two may be in the code of a
ref: the next scan would have two results for one finding.`,
		Example: `  palisade findings merge 4712 4711 --note "moved to another file"`,
		Args:    numbers("the id of a finding", "the id of the finding that stays"),
	}, func(ctx context.Context, i *identities, args []string, note string) (*findingsv1.IdentityChange, []*findingsv1.IdentityFinding, error) {
		var answer findingsv1.MergeFindingsResponse
		_, err := i.call(ctx, http.MethodPost, nil, map[string]string{"into": args[1], "note": note}, &answer, "findings", args[0], "merge")
		return answer.GetChange(), answer.GetFindings(), err
	})
}

func newFindingsUndo(std streams) *cobra.Command {
	return identityChanger(std, &cobra.Command{
		Use:   "undo CHANGE",
		Short: "Undo a split, a merge or a move",
		Long: `Undo a split, a merge or a move, once. After a split or a merge it is refused if the findings were triaged
or changed since. The results of later scans are kept.`,
		Example: `  palisade findings identity-changes
  palisade findings undo 17`,
		Args: numbers("the number of a change"),
	}, func(ctx context.Context, i *identities, args []string, note string) (*findingsv1.IdentityChange, []*findingsv1.IdentityFinding, error) {
		var answer findingsv1.UndoIdentityChangeResponse
		_, err := i.call(ctx, http.MethodPost, nil, map[string]string{"note": note}, &answer, "identity-changes", args[0], "undo")
		return answer.GetChange(), answer.GetFindings(), err
	})
}
