package automations

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automation"
	"github.com/palisade/palisade/ent/automationrun"
	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/page"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
)

const (
	// maxAutomations is the maximum number of automations of a deployment.
	maxAutomations = 200
	// defaultLimit is the size of a page without a limit.
	defaultLimit = 50
	// auditKind is the object kind in the audit trail.
	auditKind = "automation"
	// auditTriage is the object kind of what an automation triages; the id is the automation.
	auditTriage = "automation_triage"
	// auditPolicyTriage is the same of a remediation policy; the id is its slug.
	auditPolicyTriage = "remediation_policy_triage"
)

// Automations is the service group "automations".
type Automations struct {
	v1.UnimplementedAutomationsServiceServer
	store   *store.Store
	starter *outbox.Starter
}

// New serves automations from the store. The starter knows the workflows.
func New(st *store.Store, starter *outbox.Starter) *Automations {
	return &Automations{store: st, starter: starter}
}

// CreateAutomation creates an automation.
func (s *Automations) CreateAutomation(ctx context.Context, r *v1.CreateAutomationRequest) (*v1.CreateAutomationResponse, error) {
	if err := s.checkWorkflows(ctx, r.GetAutomation()); err != nil {
		return nil, err
	}
	response := &v1.CreateAutomationResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := s.store.LockDeployment(ctx, tx); err != nil {
			return err
		}
		if n, err := tx.Automation.Query().Count(ctx); err != nil {
			return err
		} else if n >= maxAutomations {
			return apierr.FailedPrecondition("a deployment has at most %d automations: delete one first", maxAutomations)
		}
		wanted, content, err := wanted(ctx, tx, r.GetAutomation(), 0)
		if err != nil {
			return err
		}
		at, by := store.Now(), caller(ctx)
		row, err := tx.Automation.Create().SetName(wanted.GetName()).SetTrigger(wanted.GetTriggerSource().String()).SetActive(wanted.GetActive()).
			SetContent(content).SetCreatedBy(by).SetUpdatedBy(by).SetCreatedAt(at).SetUpdatedAt(at).Save(ctx)
		if err != nil {
			return err
		}
		if response.Automation, err = convert(row); err != nil {
			return err
		}
		audit.Change(ctx, auditKind, row.ID, nil, response.GetAutomation())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// UpdateAutomation replaces an automation.
func (s *Automations) UpdateAutomation(ctx context.Context, r *v1.UpdateAutomationRequest) (*v1.UpdateAutomationResponse, error) {
	if err := s.checkWorkflows(ctx, r.GetAutomation()); err != nil {
		return nil, err
	}
	response := &v1.UpdateAutomationResponse{}
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := s.store.LockDeployment(ctx, tx); err != nil {
			return err
		}
		row, err := find(ctx, tx.Client(), r.GetAutomationId())
		if err != nil {
			return err
		}
		before, err := convert(row)
		if err != nil {
			return err
		}
		wanted, content, err := wanted(ctx, tx, r.GetAutomation(), row.ID)
		if err != nil {
			return err
		}
		row, err = row.Update().SetName(wanted.GetName()).SetTrigger(wanted.GetTriggerSource().String()).SetActive(wanted.GetActive()).
			SetContent(content).SetUpdatedBy(caller(ctx)).SetUpdatedAt(max(store.Now(), row.UpdatedAt+1)).Save(ctx)
		if err != nil {
			return err
		}
		if response.Automation, err = convert(row); err != nil {
			return err
		}
		audit.Change(ctx, auditKind, row.ID, before, response.GetAutomation())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

// checkWorkflows returns an error for a workflow that cannot be started. Not in a transaction: see outbox.Starter.
func (s *Automations) checkWorkflows(ctx context.Context, from *v1.Automation) error {
	for _, action := range from.GetActions() {
		name := strings.TrimSpace(action.GetConfig()[configWorkflow])
		if action.GetType() != v1.ActionType_ACTION_TYPE_TRIGGER_WORKFLOW || name == "" {
			continue
		}
		if _, err := s.starter.Prepare(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// wanted checks the automation of a request.
func wanted(ctx context.Context, tx *ent.Tx, from *v1.Automation, own int64) (*v1.Automation, []byte, error) {
	if from == nil {
		return nil, nil, apierr.InvalidArgument("automation", "automation is required")
	}
	checks := checker{tx.Client()}
	wanted, err := checks.check(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	if err := checks.checkName(ctx, wanted.GetName(), own); err != nil {
		return nil, nil, err
	}
	content, err := proto.Marshal(&v1.Automation{Description: wanted.GetDescription(), Filters: wanted.GetFilters(), Actions: wanted.GetActions()})
	return wanted, content, err
}

// DeleteAutomation deletes an automation and its run log.
func (s *Automations) DeleteAutomation(ctx context.Context, r *v1.DeleteAutomationRequest) (*v1.DeleteAutomationResponse, error) {
	err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		if _, err := s.store.LockDeployment(ctx, tx); err != nil {
			return err
		}
		row, err := find(ctx, tx.Client(), r.GetAutomationId())
		if err != nil {
			return err
		}
		before, err := convert(row)
		if err != nil {
			return err
		}
		audit.Change(ctx, auditKind, row.ID, before, nil)
		if _, err := tx.AutomationRun.Delete().Where(automationrun.AutomationID(row.ID)).Exec(ctx); err != nil {
			return err
		}
		return tx.Automation.DeleteOne(row).Exec(ctx)
	})
	if err != nil {
		return nil, err
	}
	return &v1.DeleteAutomationResponse{}, nil
}

// ListAutomations lists all automations by id.
func (s *Automations) ListAutomations(ctx context.Context, _ *v1.ListAutomationsRequest) (*v1.ListAutomationsResponse, error) {
	rows, err := s.store.Reader.Automation.Query().Order(ent.Asc(automation.FieldID)).Limit(maxAutomations).All(ctx)
	if err != nil {
		return nil, err
	}
	list, err := convertAll(rows)
	return &v1.ListAutomationsResponse{Automations: list}, err
}

// ListAutomationsV2 lists automations by id, in pages.
func (s *Automations) ListAutomationsV2(ctx context.Context, r *v1.ListAutomationsV2Request) (*v1.ListAutomationsV2Response, error) {
	digest, err := page.DigestOf("automations", &v1.ListAutomationsV2Request{DeploymentId: r.GetDeploymentId()})
	if err != nil {
		return nil, err
	}
	key, continued, err := page.Decode(digest, r.GetCursor())
	if err != nil {
		return nil, apierr.InvalidCursor("cursor")
	}
	query := s.store.Reader.Automation.Query()
	if continued {
		query.Where(automation.IDGT(key.ID))
	}
	limit := limitOf(r.GetLimit())
	rows, err := query.Order(ent.Asc(automation.FieldID)).Limit(limit + 1).All(ctx)
	if err != nil {
		return nil, err
	}
	response := &v1.ListAutomationsV2Response{}
	if len(rows) > limit {
		rows = rows[:limit]
		response.Cursor = page.Encode(digest, page.Key{ID: rows[limit-1].ID})
	}
	response.Automations, err = convertAll(rows)
	return response, err
}

func limitOf(limit int32) int {
	if limit == 0 {
		return defaultLimit
	}
	return int(limit)
}

func find(ctx context.Context, db *ent.Client, id int64) (*ent.Automation, error) {
	row, err := db.Automation.Query().Where(automation.ID(id)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, apierr.NotFound("automation %d not found", id)
	}
	return row, err
}

// caller is the name of the caller.
func caller(ctx context.Context) string {
	if p, ok := access.FromContext(ctx); ok {
		return p.Name
	}
	return ""
}

// stored decodes the content of a row.
func stored(row *ent.Automation) (*v1.Automation, error) {
	content := &v1.Automation{}
	if err := proto.Unmarshal(row.Content, content); err != nil {
		return nil, fmt.Errorf("automation %d: %w", row.ID, err)
	}
	return content, nil
}

func convert(row *ent.Automation) (*v1.Automation, error) {
	content, err := stored(row)
	if err != nil {
		return nil, err
	}
	return &v1.Automation{
		Id: fmt.Sprint(row.ID), Name: row.Name, Description: content.GetDescription(), Active: proto.Bool(row.Active),
		TriggerSource: v1.TriggerSource(v1.TriggerSource_value[row.Trigger]), Filters: content.GetFilters(), Actions: content.GetActions(),
		CreatedBy: row.CreatedBy, UpdatedBy: row.UpdatedBy, CreatedAt: store.Timestamp(&row.CreatedAt), UpdatedAt: store.Timestamp(&row.UpdatedAt),
	}, nil
}

func convertAll(rows []*ent.Automation) (list []*v1.Automation, err error) {
	for _, row := range rows {
		one, err := convert(row)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}
