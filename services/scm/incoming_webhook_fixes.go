package scm

import (
	"context"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/scm/webhook"
)

// endFix records on a finding that the pull request to fix it was merged or closed. An event about an older fix does
// not affect the current one.
func (w *eventActions) endFix(ctx context.Context, tx *ent.Tx, args eventArgs) error {
	url := webhook.RequestURL(args.Host, args.Event.RepositoryURL, args.Event.Number)
	fix, err := tx.AiFix.Query().Where(aifix.Status("opened"), aifix.PrURL(url)).Order(ent.Desc(aifix.FieldID)).First(ctx)
	if err != nil {
		return ignoreMissing(err)
	}
	newer, err := tx.AiFix.Query().Where(aifix.FindingID(fix.FindingID), aifix.Status("opened"), aifix.IDGT(fix.ID)).Exist(ctx)
	if err != nil || newer {
		return err
	}
	state := "merged"
	update := tx.Finding.Update().Where(finding.ID(fix.FindingID))
	if args.Event.Merged {
		update.SetClickToFixState(state)
	} else {
		state = "closed"
		update.Where(finding.ClickToFixState("open")).ClearClickToFixState()
	}
	n, err := update.Save(ctx)
	if err != nil || n == 0 {
		return err
	}
	about, err := structpb.NewStruct(map[string]any{"state": state, "url": url})
	if err != nil {
		return err
	}
	audit.Change(ctx, "ai_fix", fix.ID, nil, about)
	return nil
}
