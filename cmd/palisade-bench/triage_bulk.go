package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// bulkRounds triages the maximum number of findings in bulk, and changes the same number in SQL: two halves of the
// newest findings of the store, on both refs, back and forth between two states.
func (b *bench) bulkRounds(ctx context.Context, f *triageFigures) error {
	half := min(bulkTriage, b.findings/4)
	ids, err := b.ids(ctx, fmt.Sprintf("SELECT id FROM findings WHERE issue_type = 'sast' AND status = 'open' ORDER BY id DESC LIMIT %d", 2*half))
	if err != nil {
		return err
	}
	half = len(ids) / 2
	f.bulkSize = half
	for n := range min(b.rounds, deepRounds) {
		b.progress("bulk triage of %d, round %d", half, n+1)
		state := []string{"reviewing", "fixing"}[n%2]
		if err := b.db.checkpoint(ctx); err != nil {
			return err
		}
		began := time.Now()
		changed, err := b.client.triage(ctx, ids[:half], state)
		took := time.Since(began)
		if err != nil {
			return err
		}
		if changed < half {
			return fmt.Errorf("bulk triage of %d: %d changed", half, changed)
		}
		if err := b.updateByFilter(ctx, f, half, state); err != nil {
			return err
		}
		if err := b.db.checkpoint(ctx); err != nil {
			return err
		}
		began = time.Now()
		if err := b.decideByHand(ctx, ids[half:], state); err != nil {
			return fmt.Errorf("by hand: %w", err)
		}
		f.bulk = append(f.bulk, micros(took)/1000)
		f.byHand = append(f.byHand, micros(time.Since(began))/1000)
	}
	return nil
}

// updateByFilter previews a bulk update of the findings that were just triaged, makes it, and undoes it. Its figures
// are for as many findings as the other ones.
func (b *bench) updateByFilter(ctx context.Context, f *triageFigures, half int, state string) error {
	deployments, err := b.ids(ctx, "SELECT MIN(id) FROM deployments")
	if err != nil {
		return err
	}
	path := fmt.Sprintf("/api/agent/deployments/%d/findings/v2", deployments[0])
	request := map[string]any{
		"issueType": "ISSUE_TYPE_SAST", "filter": map[string]any{"tab": "ISSUE_TAB_" + strings.ToUpper(state)},
		"params": map[string]any{"triageState": "FINDING_TRIAGE_STATE_REOPENED"},
	}
	var answer struct {
		PreviewToken                string
		UpdatedCount, RestoredCount int
		ChangeID                    string
	}
	call := func(into *sample, method, path string, body any, changed *int) error {
		if err := b.db.checkpoint(ctx); err != nil {
			return err
		}
		began := time.Now()
		if err := b.client.call(ctx, method, path, body, &answer); err != nil {
			return err
		}
		took := time.Since(began)
		if *changed < half {
			return fmt.Errorf("%s %s: %d of %d changed", method, path, *changed, half)
		}
		*into = append(*into, micros(took)/1000*float64(half)/float64(*changed))
		return nil
	}
	if err := call(&f.preview, http.MethodPost, path+"/preview", request, &answer.UpdatedCount); err != nil {
		return err
	}
	request["previewToken"] = answer.PreviewToken
	if err := call(&f.update, http.MethodPatch, path, request, &answer.UpdatedCount); err != nil {
		return err
	}
	return call(&f.undo, http.MethodPost, path+"/undo/"+answer.ChangeID, map[string]any{}, &answer.RestoredCount)
}

// decideByHand does the same in SQL: insert the events, then update the findings.
func (b *bench) decideByHand(ctx context.Context, ids []int64, state string) (err error) {
	list, chosen := any(ids), "id = ANY($1)"
	if !b.db.postgres() {
		encoded, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		list, chosen = string(encoded), "id IN (SELECT value FROM json_each(?))"
	}
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	now := time.Now().UnixMicro()
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, actor_name, at)
		SELECT deployment_id, id, 'triaged', status, '%s', '', 'looked at by hand', 'user', 1, '', %d FROM findings WHERE %s`, state, now, chosen), list); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE findings SET triage_state = '%s', status = '%s', triage_comment = 'looked at by hand', triaged_at = %d, state_updated_at = %d WHERE %s",
		state, state, now, now, chosen), list); err != nil {
		return err
	}
	return tx.Commit()
}
