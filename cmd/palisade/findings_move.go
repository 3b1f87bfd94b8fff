package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
)

func newFindingsMoveCategory(std streams) *cobra.Command {
	var flags clientFlags
	var yes, preview bool
	request := &findingsv1.MoveCategoryRequest{}
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
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("%s needs the two categories, got %d arguments", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := openIdentities(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			request.FromCategory, request.ToCategory = args[0], args[1]
			move := func(preview bool, token string) (*findingsv1.MoveCategoryResponse, error) {
				request.ValidateOnly, request.PreviewToken = preview, token
				body, err := protojson.Marshal(request)
				if err != nil {
					return nil, err
				}
				raw, err := i.send(cmd.Context(), http.MethodPost, "api/v1", nil, json.RawMessage(body), "identity-changes", "move")
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
			if err != nil || preview {
				return err
			}
			if !yes && !ask(std, "Go ahead?") {
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
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&request.Project, "project", "", "name of the project")
	cmd.Flags().StringVar(&request.Tool, "tool", "", `name of the tool, as "palisade findings explain" prints it`)
	cmd.Flags().StringVar(&request.Note, "note", "", "reason, stored in the history of the findings")
	cmd.Flags().BoolVar(&preview, "preview", false, "print the preview and change nothing")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.MarkFlagsMutuallyExclusive("preview", "yes")
	_ = cmd.MarkFlagRequired("project")
	_ = cmd.MarkFlagRequired("tool")
	return cmd
}
