package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

// findingMove has the flags of the commands that move findings, and the request.
type findingMove struct {
	flags        clientFlags
	yes, preview bool
	request      *findingsv1.MoveCategoryRequest
}

func newFindingsMoveCategory(std streams) *cobra.Command {
	m := &findingMove{request: &findingsv1.MoveCategoryRequest{}}
	cmd := &cobra.Command{
		Use:   "move-category FROM TO",
		Short: "Move the findings of a tool to another category, with their decisions",
		Long: `Move the findings of a tool in a project from the category FROM to the category TO, on all refs. They keep
their ids, histories and decisions, and the next upload with the category TO finds them. "" is the category of
uploads without one. First the command prints how many findings would move, and asks.

If uploads have used TO already, the new findings that are the same on the same ref are removed. The move is
refused if uploads of a ref used FROM after the first upload with TO: then the two are different analyses. It needs
the role of an administrator. "palisade findings undo" undoes it.`,
		Example: `  palisade findings move-category backend api --project acme/web --tool gosec --preview
  palisade findings move-category "" api --project acme/web --tool gosec --yes --note "the job has a category now"`,
		Args: twoOf("categories"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.request.FromCategory, m.request.ToCategory = args[0], args[1]
			return m.run(cmd.Context(), std)
		},
	}
	m.add(cmd)
	return cmd
}

func newFindingsMoveProduct(std streams) *cobra.Command {
	m := &findingMove{request: &findingsv1.MoveCategoryRequest{}}
	cmd := &cobra.Command{
		Use:   "move-product FROM TO",
		Short: "Move the findings of a tool to another product, with their decisions",
		Long: `Move the findings of a tool in a project from the product FROM to the product TO, on all refs, after reports were
uploaded with the wrong --product. Products are sast, sca, secrets and ai_sast. The findings keep their ids,
histories and decisions, and the next upload with the product TO finds them. First the command prints how many
findings would move, and asks.

Findings that become secrets lose their code, also in their history, and an undo does not bring it back: the next
upload does. What only a report says, such as the package of a dependency, comes with the next upload, too.

If uploads have used TO already, the new findings that are the same on the same ref are removed, and the moved ones
get what was reported last. The move is refused if reports had findings of FROM after the first upload with TO: then
the two are different analyses. It needs the role of an administrator. "palisade findings undo" undoes it.`,
		Example: `  palisade findings move-product sast secrets --project acme/web --tool acme-leaks --preview
  palisade findings move-product sast secrets --project acme/web --tool acme-leaks --category api --yes`,
		Args: twoOf("products"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.request.FromProduct, m.request.ToProduct = args[0], args[1]
			m.request.ToCategory = m.request.GetFromCategory()
			return m.run(cmd.Context(), std)
		},
	}
	m.add(cmd)
	cmd.Flags().StringVar(&m.request.FromCategory, "category", "", "category of the findings; when absent, those of uploads without one")
	return cmd
}

// twoOf requires the two arguments of a move.
func twoOf(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 2 {
			return usagef("%s needs the two %s, got %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}

func (m *findingMove) add(cmd *cobra.Command) {
	m.flags.add(cmd)
	cmd.Flags().StringVar(&m.request.Project, "project", "", "name of the project")
	cmd.Flags().StringVar(&m.request.Tool, "tool", "", `name of the tool, as "palisade findings explain" prints it`)
	cmd.Flags().StringVar(&m.request.Note, "note", "", "reason, stored in the history of the findings")
	cmd.Flags().BoolVar(&m.preview, "preview", false, "print the preview and change nothing")
	cmd.Flags().BoolVarP(&m.yes, "yes", "y", false, "do not ask")
	cmd.MarkFlagsMutuallyExclusive("preview", "yes")
	_ = cmd.MarkFlagRequired("project")
	_ = cmd.MarkFlagRequired("tool")
}

// run prints the preview, asks, and moves the findings.
func (m *findingMove) run(ctx context.Context, std streams) error {
	i, err := openIdentities(ctx, m.flags, std)
	if err != nil {
		return err
	}
	move := func(preview bool, token string) (*findingsv1.MoveCategoryResponse, error) {
		m.request.ValidateOnly, m.request.PreviewToken = preview, token
		body, err := protojson.Marshal(m.request)
		if err != nil {
			return nil, err
		}
		raw, err := i.send(ctx, http.MethodPost, "api/v1", nil, json.RawMessage(body), "identity-changes", "move")
		if err != nil {
			return nil, err
		}
		answer := &findingsv1.MoveCategoryResponse{}
		return answer, decode(raw, answer)
	}
	shown, err := move(true, "")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "%d findings move, %d of them with a decision. %d findings are replaced.\n",
		shown.GetMovedCount(), shown.GetDecidedCount(), shown.GetReplacedCount())
	if err != nil || m.preview {
		return err
	}
	if !m.yes && !ask(std, "Go ahead?") {
		_, _ = fmt.Fprintln(std.err, "Nothing was changed. Use --yes where nobody can answer.")
		return nil
	}
	done, err := move(false, shown.GetPreviewToken())
	if err != nil {
		return err
	}
	id := done.GetChange().GetId()
	_, _ = fmt.Fprintf(std.err, "Identity change %d. Undo it with: palisade findings undo %d\n", id, id)
	return nil
}
